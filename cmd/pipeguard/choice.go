package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// choice is the value of a flag that takes one of a few words.
type choice struct {
	value string
	among []string
}

// String, Set and Type make choice a flag value.
func (c *choice) String() string { return c.value }

// Set refuses what is not among the words.
func (c *choice) Set(s string) error {
	if !slices.Contains(c.among, s) {
		return errors.New("must be " + strings.Join(c.among[:len(c.among)-1], ", ") + " or " + c.among[len(c.among)-1])
	}
	c.value = s
	return nil
}

// Type names the words in help texts.
func (c *choice) Type() string { return strings.Join(c.among, "|") }

// addChoice adds a flag whose first word is the default.
func addChoice(cmd *cobra.Command, name, short, help string, among ...string) *choice {
	c := &choice{among[0], among}
	cmd.Flags().VarP(c, name, short, help)
	completes(cmd, name, among...)
	return c
}

// completes offers words for a flag in a shell.
func completes(cmd *cobra.Command, name string, words ...string) {
	// It fails for a flag that is not there or has its words, both of which each test of the command finds.
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// addFormat adds the flag -o with a form for people, text unless another is named, and json.
func addFormat(cmd *cobra.Command, words ...string) *choice {
	if words == nil {
		words = []string{"text"}
	}
	return addChoice(cmd, "output", "o", "output format; json is stable, see above", append(words, "json")...)
}

// isJSON says whether the word is json.
func (c *choice) isJSON() bool { return c.value == "json" }

// print writes a report as JSON, or as text for people.
func (c *choice) print(cmd *cobra.Command, report any, asText func(*printer)) *printer {
	p := newPrinter(cmd.OutOrStdout())
	if c.isJSON() {
		p.json(report)
	} else {
		asText(p)
	}
	return p
}
