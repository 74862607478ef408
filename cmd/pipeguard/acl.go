package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/internal/config"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

func newACL() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "acl",
		Short: "Check a proxy's access list, and ask it who may call what",
		Long: `Reads the configuration of a node's proxy as the proxy would, and answers from its access list alone: no node, no pipe
and no cluster is asked. The file - is standard input.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return needsCommand(cmd) },
	}
	cmd.AddCommand(newACLCheck(), newACLExplain())
	return cmd
}

// tableFormat is format with "table" for its text, which is one here.
type tableFormat struct{ format }

// Set takes table beside text and json.
func (f *tableFormat) Set(s string) error {
	if s == "table" {
		s = string(formatText)
	}
	if f.format.Set(s) != nil {
		return errors.New("must be table or json")
	}
	return nil
}

// String names the value as Set takes it.
func (f *tableFormat) String() string {
	if f.format == formatJSON {
		return string(formatJSON)
	}
	return "table"
}

// Type names the values in help texts.
func (f *tableFormat) Type() string { return "table|json" }

func addTableFormat(cmd *cobra.Command) *tableFormat {
	f := &tableFormat{formatText}
	cmd.Flags().VarP(f, "output", "o", "output format; json is stable, see above")
	return f
}

// list is an access list, and the APIs that it was compared with.
type list struct {
	file     string
	settings config.Proxy
	apis     []*apiserver.API
	policy   *acl.Policy // nil if there are faults
	faults   []string    // one a line, each with its place
	hints    []string
}

// loadList reads a file. Faults of the list are in it; the error is of a file that cannot be read at all.
func loadList(cmd *cobra.Command, name string) (l list, err error) {
	l.apis, err = apiserver.Load(apiserver.Groups()...)
	if err != nil {
		return l, badInput(err)
	}
	l.file = name
	if name == "-" {
		l.file = "standard input"
	}
	err = withFile(cmd, name, func(r io.Reader) error {
		text, err := io.ReadAll(io.LimitReader(r, longestList))
		if err != nil {
			return badInput(fmt.Errorf("read %s: %w", l.file, err))
		}
		l.settings, err = config.ParseProxy(l.file, text)
		if err == nil {
			l.policy, err = l.settings.Policy(l.known())
		}
		if err == nil {
			if _, err = l.settings.Accounts(l.known()); err != nil {
				l.policy = nil // the proxy takes no part of such a file
			}
		}
		if err != nil {
			l.faults = inert.Faults(err)
			l.hints = l.olderNames()
		}
		return nil
	})
	return l, err
}

// longestList is more than config takes, which says so.
const longestList = 16 << 20

// known are the pipes that rules may name.
func (l *list) known() []access.API {
	return l.settings.Known(l.apis)
}

const fullPipe = `\\.\pipe\`

// olderNames says what to write for names of older API versions, which rules are not written in.
func (l *list) olderNames() (hints []string) {
	said := map[string]bool{}
	for i, rule := range l.settings.ACL.Rules {
		for j, name := range rule.Operations {
			operation := operationOf(l.apis, name)
			if operation == "" || operation == name || said[name] {
				continue
			}
			said[name] = true
			hints = append(hints, fmt.Sprintf("acl.rules[%d].operations[%d]: %s of an older API version is %s in the newest, by which all versions are judged", i, j, name, operation))
		}
	}
	return hints
}

// operationOf returns the operation that a method of any version asks for, or "".
func operationOf(apis []*apiserver.API, method string) string {
	for _, api := range apis {
		if m, ok := api.Method(method); ok {
			return m.Operation.Name
		}
	}
	return ""
}
