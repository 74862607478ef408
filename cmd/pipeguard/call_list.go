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

func findAPI(name string) (*apiserver.API, error) {
	if name == "" {
		return nil, errors.New("name a pipe with --pipe")
	}
	apis, err := apiserver.Load(apiserver.Groups()...)
	if err != nil {
		return nil, err
	}
	for _, api := range apis {
		if gv := api.GroupVersion(); strings.EqualFold(name, gv.String()) || strings.EqualFold(name, gv.Pipe()) {
			return api, nil
		}
	}
	return nil, fmt.Errorf("no pipe %q is known; \"pipeguard call --list\" names those that are", name)
}

func callList(cmd *cobra.Command, args []string, o callOptions) error {
	if len(args) > 0 {
		return cli.BadInput(errors.New("--list takes no method"))
	}
	apis, err := apiserver.Load(apiserver.Groups()...)
	if err != nil {
		return cli.BadInput(err)
	}
	if o.pipe != "" {
		api, err := findAPI(o.pipe)
		if err != nil {
			return cli.BadInput(err)
		}
		apis = []*apiserver.API{api}
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
