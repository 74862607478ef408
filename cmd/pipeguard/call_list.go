package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

// findAPIs returns the API of a pipe, or all APIs if none is named.
func findAPIs(pipe string) ([]*apiserver.API, error) {
	apis, err := apiserver.Load(apiserver.Groups()...)
	if err != nil || pipe == "" {
		return apis, err
	}
	for _, api := range apis {
		if gv := api.GroupVersion(); strings.EqualFold(pipe, gv.String()) || strings.EqualFold(pipe, gv.Pipe()) {
			return []*apiserver.API{api}, nil
		}
	}
	return nil, fmt.Errorf("no pipe %q is known; \"pipeguard call --list\" names those that are", pipe)
}

func callList(cmd *cobra.Command, args []string, o callOptions) error {
	if len(args) > 0 {
		return cli.BadInput(errors.New("--list takes no method"))
	}
	apis, err := findAPIs(o.pipe)
	if err != nil {
		return cli.BadInput(err)
	}
	p := cli.NewPrinter(cmd.OutOrStdout())
	for _, api := range apis {
		for _, m := range api.Methods() {
			served := ""
			if m.Operation != nil && m.Operation.Name != m.Name {
				served = " (" + m.Operation.Name + ")"
			}
			p.Printf("%s %s%s\n", inert.Line(api.GroupVersion().Pipe()), inert.Line(m.Name), inert.Line(served))
		}
	}
	return p.Done(nil)
}
