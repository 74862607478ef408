// Package aclcmd is "pipeguard acl": it checks the access list of a proxy, and explains what the list decides about a call.
package aclcmd

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/internal/config"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

// NewCommand returns "pipeguard acl".
func NewCommand() *cobra.Command {
	return cli.Group("acl", "Check a proxy's access list, and ask it about calls", `Reads the configuration of a node's proxy as the proxy would, and answers from its access list alone: no node, no pipe
and no cluster is asked. The file - is standard input.`,
		newCheck(), newExplain(),
	)
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

// loadList reads a file. Faults of the list are part of the result; an error means that the file could not be read.
func loadList(cmd *cobra.Command, name string) (l list, err error) {
	l.apis, err = apiserver.Load(apiserver.Groups()...)
	if err != nil {
		return l, cli.BadInput(err)
	}
	l.file = name
	if name == "-" {
		l.file = "standard input"
	}
	err = cli.WithFile(cmd, name, func(r io.Reader) error {
		text, err := io.ReadAll(io.LimitReader(r, longestList))
		if err != nil {
			return cli.BadInput(fmt.Errorf("read %s: %w", l.file, err))
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

// longestList is more than config accepts, which reports it.
const longestList = 16 << 20

// known returns the pipes that rules may name.
func (l *list) known() []access.API {
	return l.settings.Known(l.apis)
}

const fullPipe = `\\.\pipe\`

// olderNames suggests the newest names for operations that rules name as older API versions do.
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
