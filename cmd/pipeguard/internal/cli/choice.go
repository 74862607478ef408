package cli

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Choice is the value of a flag that takes one of a few words.
type Choice struct {
	Value string // the chosen word
	among []string
	given
}

// String, Set and Type make choice a flag value.
func (c *Choice) String() string { return c.Value }

// Set refuses what is not among the words, and a second value.
func (c *Choice) Set(s string) error {
	if !slices.Contains(c.among, s) {
		return errors.New("must be " + strings.Join(c.among[:len(c.among)-1], ", ") + " or " + c.among[len(c.among)-1])
	}
	return c.set(&c.Value, s)
}

// Type names the words in help texts.
func (c *Choice) Type() string { return strings.Join(c.among, "|") }

// AddChoice adds a flag whose first word is the default.
func AddChoice(cmd *cobra.Command, name, short, help string, among ...string) *Choice {
	c := &Choice{Value: among[0], among: among}
	cmd.Flags().VarP(c, name, short, help)
	Completes(cmd, name, among...)
	return c
}

// Completes offers words for a flag in a shell.
func Completes(cmd *cobra.Command, name string, words ...string) {
	// It fails for a flag that is not there or has its words, both of which each test of the command finds.
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// AddFormat adds the flag -o: json, or one of some words for the form for people, text if none is given.
func AddFormat(cmd *cobra.Command, words ...string) *Choice {
	if words == nil {
		words = []string{"text"}
	}
	return AddChoice(cmd, "output", "o", "output format; json is stable, see above", append(words, "json")...)
}

// IsJSON says whether the word is json.
func (c *Choice) IsJSON() bool { return c.Value == "json" }

// Print writes a report as JSON, or as text for people.
func (c *Choice) Print(cmd *cobra.Command, report any, asText func(*Printer)) *Printer {
	p := NewPrinter(cmd.OutOrStdout())
	if c.IsJSON() {
		p.JSON(report)
	} else {
		asText(p)
	}
	return p
}
