package main

import (
	"flag"
	"slices"
)

// klogFlags are the logging flags of csi-proxy.exe. Install scripts carry them, so all are accepted.
type klogFlags struct {
	verbosity    uint
	file         string
	toStderr     bool
	alsoToStderr bool
}

// idleKlog are those that do nothing here, bools first: a bool may be given without a value.
var (
	idleKlogBools  = []string{"add_dir_header", "legacy_stderr_threshold_behavior", "one_output", "skip_headers", "skip_log_headers"}
	idleKlogValues = []string{"alsologtostderrthreshold", "log_backtrace_at", "log_dir", "log_file_max_size", "stderrthreshold", "vmodule"}
)

func (k *klogFlags) register(set *flag.FlagSet) {
	set.UintVar(&k.verbosity, "v", 0, "`level` of detail of the log; from 1 on every call is a line")
	set.StringVar(&k.file, "log_file", "", "`file` for the log, with -logtostderr=false")
	set.BoolVar(&k.toStderr, "logtostderr", true, "log to standard error and not to -log_file")
	set.BoolVar(&k.alsoToStderr, "alsologtostderr", false, "log to standard error as well as to -log_file")
	for _, name := range idleKlogBools {
		set.Bool(name, false, "")
	}
	for _, name := range idleKlogValues {
		set.String(name, "", "")
	}
}

func (k *klogFlags) isIdle(name string) bool {
	return slices.Contains(idleKlogBools, name) || slices.Contains(idleKlogValues, name)
}
