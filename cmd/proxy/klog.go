package main

import (
	"flag"
	"slices"
)

// klogFlags are the logging flags of csi-proxy.exe. Install scripts carry them, so all are accepted.
type klogFlags struct {
	verbosity    uint
	file         string
	maxSize      uint64 // in MB; 0 is no bound
	toStderr     bool
	alsoToStderr bool
}

// The flags of klog that have no effect here, bools first: a bool may be given without a value.
var (
	idleKlogBools  = []string{"add_dir_header", "legacy_stderr_threshold_behavior", "one_output", "skip_headers", "skip_log_headers"}
	idleKlogValues = []string{"alsologtostderrthreshold", "log_backtrace_at", "log_dir", "stderrthreshold", "vmodule"}
)

func (k *klogFlags) register(set *flag.FlagSet) {
	set.UintVar(&k.verbosity, "v", 0, "`level` of detail of the log; from 1 on every call is a line")
	set.StringVar(&k.file, "log_file", "", "`file` for the log, with -logtostderr=false")
	set.BoolVar(&k.toStderr, "logtostderr", true, "log to standard error and not to -log_file")
	set.Uint64Var(&k.maxSize, "log_file_max_size", 0, "`size` in MB at which the log file is renamed and a new one begun; 0 means never; if it is not given, the configuration's, else 100")
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
