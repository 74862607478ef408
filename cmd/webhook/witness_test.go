package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestTheFlagsOfTheWitnessAreChecked(t *testing.T) {
	cluster := []string{"--pod-namespace=n", "--pod-name=p", "--kubeconfig=/nonexistent/config"}
	with := func(args ...string) []string { return append(append([]string{}, cluster...), args...) }
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no witness, but a key":      {with("--witness-key=k"), "are for --witness"},
		"no witness, but keys":       {with("--witness-node-keys=k"), "are for --witness"},
		"no witness, but trust":      {with("--witness-trust-first-use"), "are for --witness"},
		"no key":                     {with("--witness", "--witness-node-keys=k"), "--witness needs --witness-key"},
		"no log that could be known": {with("--witness", "--witness-key=k"), "it would know no log"},
		"without a cluster":          {[]string{"--standalone", "--witness", "--witness-key=k", "--witness-trust-first-use"}, "--witness is for a webhook in a cluster"},
	} {
		var stderr bytes.Buffer
		if code := execute(t.Context(), c.args, &bytes.Buffer{}, &stderr); code != exitUsage || !strings.Contains(stderr.String(), c.want) {
			t.Errorf("%s: exit code %d, %s", name, code, stderr.String())
		}
	}
	var stderr bytes.Buffer // the files are read later: what is wrong with them keeps nobody from reviews
	args := with("--witness", "--witness-key=/nonexistent/key", "--witness-node-keys=/nonexistent/keys")
	if code := execute(t.Context(), args, &bytes.Buffer{}, &stderr); code != exitFailure || strings.Contains(stderr.String(), "key") {
		t.Errorf("exit code %d, %s", code, stderr.String())
	}
}
