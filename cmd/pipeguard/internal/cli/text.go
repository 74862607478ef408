package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
)

// given says whether a flag of one value was given.
type given bool

// set sets the value of a flag once: of two, one would be ignored.
func (g *given) set(value *string, to string) error {
	if *g {
		return errors.New("it is given twice, and takes one value")
	}
	*g, *value = true, to
	return nil
}

// text is the value of a flag that takes one text.
type text struct {
	value *string
	given
}

func (t *text) String() string { return *t.value }

func (*text) Type() string { return "string" }

func (t *text) Set(value string) error {
	if strings.TrimSpace(value) == "" {
		return errors.New("it is empty: give it a value, or leave the flag out")
	}
	return t.set(t.value, value)
}

// Text adds a flag that takes one text and has no default. A blank one, as of a variable that is not set, is refused.
func Text(cmd *cobra.Command, value *string, name, short, help string) {
	cmd.Flags().VarP(&text{value: value}, name, short, help)
}
