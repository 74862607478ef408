package cli

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// pluginPrefix begins the names of programs that kubectl takes for plugins (https://kubernetes.io/docs/tasks/extend-kubectl/kubectl-plugins/).
const pluginPrefix = "kubectl-"

// IsPlugin reports whether a program was called as the kubectl plugin of its name: executable is the first word of its command line.
func IsPlugin(executable, program string) bool {
	name := executable[strings.LastIndexAny(executable, `/\`)+1:] // paths of either system: kubectl passes the whole one
	name = strings.TrimSuffix(strings.ToLower(name), ".exe")
	return name == pluginPrefix+program
}

// AsPlugin has the help texts and errors of a program name it as users of kubectl call it.
func AsPlugin(root *cobra.Command) {
	program := root.Name()
	var commands []string
	for _, c := range root.Commands() {
		commands = append(commands, regexp.QuoteMeta(c.Name()))
	}
	called := regexp.MustCompile(`(^|[^\w./-])` + regexp.QuoteMeta(program) + ` (` + strings.Join(commands, "|") + `)\b`)
	rename := func(text string) string { return called.ReplaceAllString(text, "${1}kubectl "+program+" ${2}") }
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = rename(f.Usage) })
		cmd.Short, cmd.Long, cmd.Example = rename(cmd.Short), rename(cmd.Long), rename(cmd.Example)
		for _, c := range cmd.Commands() {
			visit(c)
		}
	}
	visit(root)
	if root.Annotations == nil {
		root.Annotations = map[string]string{}
	}
	root.Annotations[cobra.CommandDisplayNameAnnotation] = "kubectl " + program
}
