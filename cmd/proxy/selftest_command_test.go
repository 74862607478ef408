//go:build !windows || fakehost

package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestSelftestCommandPrintsATableOrJSON(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"selftest", "--host", "memory"}, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	if text := stdout.String(); !strings.HasPrefix(text, "GROUP ") || !strings.Contains(text, "GetBIOSSerialNumber") {
		t.Error(text)
	}
	stdout.Reset()
	if code := run(t.Context(), []string{"selftest", "--host", "memory", "-json"}, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	var answers []answer
	if err := json.Unmarshal(stdout.Bytes(), &answers); err != nil || len(answers) < 20 {
		t.Errorf("%d answers, %v", len(answers), err)
	}
	for name, args := range map[string][]string{
		"an unknown host": {"--host", "upstream"}, "an argument": {"all"}, "an unknown flag": {"--write"},
	} {
		if code := run(t.Context(), append([]string{"selftest"}, args...), &stdout, &stderr); code != 2 {
			t.Errorf("%s: exit code %d", name, code)
		}
	}
	if code := run(t.Context(), []string{"selftest", "--host", "memory", "-kubelet-path", "relative"}, &stdout, &stderr); code != 1 {
		t.Errorf("a relative directory: exit code %d", code)
	}
}
