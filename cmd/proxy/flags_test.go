package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/config"
)

// needed are the flags without which this system's proxy does not start.
func needed(args ...string) []string {
	if runtime.GOOS == "windows" {
		return args
	}
	return append([]string{"--socket-dir", "sockets"}, args...)
}

func TestInstallLineOfCSIProxyIsAccepted(t *testing.T) {
	f, err := parseFlags(needed("-windows-service", `-log_file=C:\etc\kubernetes\logs\csi-proxy.log`, "-logtostderr=false",
		`-kubelet-path=D:\kubelet`, `-working-dir=D:\a`, `--working-dir`, `D:\b`, "-metrics-bind-address=127.0.0.1:9100"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if !f.windowsService || f.klog.file != `C:\etc\kubernetes\logs\csi-proxy.log` || f.klog.toStderr || f.kubeletPath != `D:\kubelet` || f.metricsAddress != "127.0.0.1:9100" {
		t.Errorf("flags %+v", f)
	}
	if diff := cmp.Diff([]string{`D:\a`, `D:\b`}, f.workingDirs); diff != "" {
		t.Error(diff)
	}
	if len(f.idle) != 0 {
		t.Errorf("flags said to have no effect: %q", f.idle)
	}
}

func TestDefaultsAreThoseOfCSIProxy(t *testing.T) {
	f, err := parseFlags(needed(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if f.kubeletPath != `C:\var\lib\kubelet` || f.windowsService || f.metricsAddress != "" || !f.klog.toStderr || f.klog.verbosity != 0 || f.config != defaultConfig {
		t.Errorf("flags %+v", f)
	}
	if !f.requirePrivacy {
		t.Error("SMB shares are mapped without encryption")
	}
}

func TestCommandLineGoesBeforeTheConfiguration(t *testing.T) {
	own := map[bool]string{true: hostWindows, false: hostMemory}[runtime.GOOS == "windows"]
	c := config.Proxy{Backend: hostUpstream, Log: config.Log{Path: "c.log", MaxSizeMB: 7}}
	for name, tt := range map[string]struct {
		args       []string
		c          config.Proxy
		host, path string
		megabytes  int
	}{
		"neither says anything":           {nil, config.Proxy{}, own, "", 0},
		"the configuration alone":         {nil, c, hostUpstream, "c.log", 7},
		"both":                            {[]string{"--host", "memory", "-log_file=f.log", "-logtostderr=false", "-log_file_max_size=9"}, c, hostMemory, "f.log", 9},
		"a size of no bound":              {[]string{"-log_file_max_size=0"}, c, hostUpstream, "c.log", -1},
		"a size beyond all that are":      {[]string{"-log_file_max_size=99999999999"}, c, hostUpstream, "c.log", 1 << 20},
		"standard error is asked for":     {[]string{"-logtostderr"}, c, hostUpstream, "", 7},
		"a file that klog would not open": {[]string{"-log_file=f.log"}, c, hostUpstream, "c.log", 7},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := parseFlags(needed(tt.args...), io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			if host, path, size := f.backend(tt.c), f.logPath(tt.c.Log), f.logSize(tt.c.Log); host != tt.host || path != tt.path || size != tt.megabytes {
				t.Errorf("host %s, log %q of %d MiB", host, path, size)
			}
		})
	}
}

func TestEveryFlagOfKlogIsAccepted(t *testing.T) {
	args := []string{
		"-add_dir_header", "-alsologtostderr", "-alsologtostderrthreshold=ERROR", "-legacy_stderr_threshold_behavior=false", "-log_backtrace_at=a.go:1", "-log_dir=x", "-log_file=y",
		"-log_file_max_size=5", "-logtostderr=false", "-one_output", "-skip_headers", "-skip_log_headers=true", "-stderrthreshold=2", "-v=5", "-vmodule=a=1",
		"-require-privacy=false",
	}
	f, err := parseFlags(needed(args...), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	want := "-add_dir_header -alsologtostderrthreshold -legacy_stderr_threshold_behavior -log_backtrace_at -log_dir -one_output -skip_headers -skip_log_headers -stderrthreshold -vmodule"
	if got := strings.Join(f.idle, " "); got != want {
		t.Errorf("without effect: %s", got)
	}
	if f.requirePrivacy || f.klog.maxSize != 5 || f.klog.verbosity != 5 || !f.klog.alsoToStderr || f.klog.file != "y" {
		t.Errorf("klog flags %+v", f.klog)
	}
}

func TestParseFlagsRefuses(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"an unknown flag", needed("--allow-all"), "allow-all"},
		{"an argument", needed("start"), `unexpected argument "start"`},
		{"an unknown host", needed("--host", "real"), `--host "real"`},
		{"a word for a level", needed("-v=high"), "high"},
		{"a negative level", needed("-v=-1"), "-1"},
		{"a word for a bool", needed("-windows-service=maybe"), "maybe"},
	}
	if runtime.GOOS == "windows" {
		tests = append(tests, struct {
			name string
			args []string
			want string
		}{"sockets on Windows", []string{"--socket-dir", "x"}, "--socket-dir"})
	} else {
		tests = append(tests, []struct {
			name string
			args []string
			want string
		}{
			{"no directory for sockets", nil, "--socket-dir is required"},
			{"the Windows host elsewhere", needed("--host", "windows"), "this is not Windows"},
			{"a descriptor elsewhere", needed("--pipe-sddl", "D:P"), "--pipe-sddl"},
			{"several faults at once", []string{"--host", "real", "x"}, "--socket-dir is required"},
		}...)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if code := run(t.Context(), tt.args, &stdout, &stderr); code != 2 {
				t.Errorf("exit code %d", code)
			}
			if !strings.Contains(stderr.String(), tt.want) || stdout.Len() != 0 {
				t.Errorf("stderr %q does not say %q; stdout %q", stderr.String(), tt.want, stdout.String())
			}
		})
	}
}

func TestVersionAndHelp(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"--version"}, &stdout, &stderr); code != 0 || !strings.HasPrefix(stdout.String(), "proxy v") {
		t.Errorf("exit code %d, stdout %q", code, stdout.String())
	}
	if _, err := parseFlags([]string{"-h"}, &stderr); !errors.Is(err, flag.ErrHelp) || !strings.Contains(stderr.String(), "-kubelet-path") {
		t.Errorf("-h: %v", err)
	}
}

func TestLogGoesWhereTheFlagsSay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "proxy.log")
	for name, tt := range map[string]struct {
		args           []string
		inFile, onErr  bool
		debug, warning bool
	}{
		"standard error by default":   {nil, false, true, false, false},
		"a file":                      {[]string{"-log_file", file, "-logtostderr=false"}, true, false, false, false},
		"a file without the switch":   {[]string{"-log_file", file}, false, true, false, false},
		"both":                        {[]string{"-log_file", file, "-logtostderr=false", "-alsologtostderr"}, true, true, false, false},
		"the switch without a file":   {[]string{"-logtostderr=false"}, false, true, false, true},
		"detail from level 1 on":      {[]string{"-v=1"}, false, true, true, false},
		"a level beyond all that are": {[]string{"-v=4000000000"}, false, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() { _ = os.Remove(file) })
			f, err := parseFlags(needed(tt.args...), io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			var stderr bytes.Buffer
			log, closeLog, err := newLog(f, config.Log{}, &stderr)
			if err != nil {
				t.Fatal(err)
			}
			f.warn(config.Log{}, log)
			log.Info("an info line")
			log.Debug("a debug line")
			closeLog()
			written, err := os.ReadFile(file)
			if tt.inFile != (err == nil) || tt.inFile != bytes.Contains(written, []byte("an info line")) {
				t.Errorf("file holds %q, error %v", written, err)
			}
			if tt.onErr != strings.Contains(stderr.String(), "an info line") {
				t.Errorf("stderr %q", stderr.String())
			}
			if tt.debug != strings.Contains(stderr.String(), "a debug line") || tt.warning != strings.Contains(stderr.String(), "needs a -log_file") {
				t.Errorf("stderr %q", stderr.String())
			}
		})
	}
}

func TestLogFileThatCannotBeOpenedStopsTheStart(t *testing.T) {
	var stderr bytes.Buffer
	code := run(t.Context(), needed("-log_file", filepath.Join(t.TempDir(), "none", "x.log"), "-logtostderr=false"), io.Discard, &stderr)
	if code != 1 || !strings.Contains(stderr.String(), "open log file") {
		t.Errorf("exit code %d, stderr %q", code, stderr.String())
	}
}
