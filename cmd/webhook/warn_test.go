package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// Policies of the parameters have no status: the log is where their author is told.
func TestTheLogSaysWhatPoliciesOfTheParametersMayNotMean(t *testing.T) {
	file := filepath.Join(t.TempDir(), "parameters.yaml")
	for text, want := range map[string]string{
		"pipePolicies: {disk: {pipes: [csi-proxy-disk-v1], subjects: [{name: s, namespace: shop}]}}":                       "PipePolicy parameters/disk: subject s names no service account",
		"pipePolicies: {disk: {pipes: [csi-proxy-disk-v1], subjects: [{name: s, namespace: shop, serviceAccounts: [a]}]}}": "",
		"pipePolicies: 5": "",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		core, logs := observer.New(zap.WarnLevel)
		(&source{params: file}).warn(zap.New(core))
		var said string
		for _, e := range logs.All() {
			said += e.Message
		}
		if !strings.HasPrefix(said, want) || want == "" && said != "" {
			t.Errorf("%s: %q", text, said)
		}
	}
}
