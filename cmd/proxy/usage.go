package main

import (
	"flag"
	"fmt"
	"io"
	"strings"
)

const usageHead = `proxy serves the CSI Proxy APIs on the named pipes of a node. It names the process behind each call, checks it against an
access list, and writes an audit record before it acts. Without a configuration every call is denied.

Usage:
  proxy --config FILE [flags]     serve
  proxy COMMAND [flags]

Commands, each with a --help of its own:
  install        make this program a service of the node, or bring an installed one up to date
  uninstall      remove the service
  status         show the service
  selftest       perform the read-only operations of every group on the host
  check-config   check a configuration file

Examples:
  proxy.exe --config C:\ProgramData\Pipeguard\proxy.yaml
  proxy.exe --config C:\ProgramData\Pipeguard\proxy.yaml -windows-service -log_file=C:\etc\kubernetes\logs\csi-proxy.log -logtostderr=false
  proxy --socket-dir ./pipes --config proxy.yaml     outside Windows: unix sockets stand in for pipes, over an in-memory host

Exit codes: 0 stopped as asked, 1 could not start or failed, 2 wrong command line. As a service it ends with a service-specific code:
1 fault, 2 command line, 3 configuration, 4 audit log, 5 pipes, 6 host.

Flags, with one dash or two:
`

// usage prints the help of -h: our flags and those that have an effect, and the others in one line.
func (f *flags) usage(set *flag.FlagSet, out io.Writer) {
	var b strings.Builder
	b.WriteString(usageHead)
	var idle []string
	set.VisitAll(func(one *flag.Flag) {
		if f.klog.isIdle(one.Name) {
			idle = append(idle, "-"+one.Name)
			return
		}
		describe(&b, one)
	})
	fmt.Fprintf(&b, "\nAccepted for csi-proxy.exe's sake, without effect:\n  %s\n", strings.Join(idle, " "))
	_, _ = io.WriteString(out, b.String()) // there is nowhere else to say that it failed
}

// describe writes a flag as -h shows it.
func describe(b *strings.Builder, one *flag.Flag) {
	value, text := flag.UnquoteUsage(one)
	fmt.Fprintf(b, "  %s\n        %s", strings.TrimSpace("-"+one.Name+" "+value), text)
	if one.DefValue != "" && one.DefValue != "false" && one.DefValue != "0" {
		fmt.Fprintf(b, " (default %s)", one.DefValue)
	}
	b.WriteByte('\n')
}
