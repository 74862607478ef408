package main

import (
	"fmt"
	"io"

	"github.com/pipeguard/pipeguard/internal/audit/query"
)

// summarize says what was left where.
func summarize(out io.Writer, p places) error {
	records, denied := 0, 0
	source, err := query.Open([]string{p.evidence()}, nil)
	if err != nil {
		return err
	}
	for r, err := range source.Records() {
		if err != nil {
			return err
		}
		records++
		if r.Outcome != nil && r.Outcome.Result == "denied" {
			denied++
		}
	}
	_, err = fmt.Fprintf(out, `The log of node %s, one day: %d records, %d calls denied.

  evidence              as it was copied
  evidence-edited       somebody has changed one record
  evidence-rolled-back  somebody has put back an older state, with the checkpoints of then
  elsewhere             what does not come from the node: the public keys, and the checkpoint that a witness cosigned last
  node, witness         what they work with; a reviewer does not have it

all in %s. docs/reviewers-guide.md reads them.
`, nodeName, records, denied, p.dir)
	return err
}
