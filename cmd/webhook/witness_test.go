package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestTheSettingsOfTheWitnessAreChecked(t *testing.T) {
	inCluster(t)
	for name, c := range map[string]struct {
		fields, want string
		args         []string
	}{
		"no key, but keys of nodes":  {fields: "witness: {nodeKeys: k}", want: "witness: there is none without key"},
		"no key, but trust":          {fields: "witness: {trustFirstUse: true}", want: "witness: there is none without key"},
		"no log that could be known": {fields: "witness: {key: k}", want: "it would know no log"},
		"without a cluster":          {fields: "witness: {key: k, trustFirstUse: true}", args: []string{"--standalone"}, want: "witness: is for a webhook in a cluster"},
	} {
		var stderr bytes.Buffer
		args := append(c.args, configFile(t, c.fields), "--kubeconfig=/nonexistent/config")
		if code := execute(t.Context(), args, &bytes.Buffer{}, &stderr); code != exitUsage || !strings.Contains(stderr.String(), c.want) {
			t.Errorf("%s: exit code %d, %s", name, code, stderr.String())
		}
	}
	var stderr bytes.Buffer // the files are read later: what is wrong with them keeps nobody from reviews
	args := []string{configFile(t, "witness: {key: /nonexistent/key, nodeKeys: /nonexistent/keys}"), "--kubeconfig=/nonexistent/config"}
	if code := execute(t.Context(), args, &bytes.Buffer{}, &stderr); code != exitFailure || strings.Contains(stderr.String(), "key") {
		t.Errorf("exit code %d, %s", code, stderr.String())
	}
}
