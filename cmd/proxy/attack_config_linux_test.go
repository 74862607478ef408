package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/test/harness"
)

// A rule in words of an older API version would hold for nothing, or for something else than its author meant. So it stops the
// start, and says where it stands.
func TestRulesInOlderWordsStopTheStart(t *testing.T) {
	rule := func(pipes, operations string) string {
		return "acl:\n  rules:\n    - name: old\n      pipes: [" + pipes + "]\n      operations: [" + operations + "]\n      callers: [{namespace: storage, serviceAccount: csi-node}]\n"
	}
	for name, c := range map[string]struct {
		text string
		at   string // line and column
		want []string
	}{
		"LinkPath, which is CreateSymlink":       {rule("filesystem-v1alpha1", "PathExists, LinkPath"), "7:32", []string{"acl.rules[0].operations[1]", "LinkPath", "CreateSymlink"}},
		"IsMountPoint, which is IsSymlink":       {rule("filesystem-*", "IsMountPoint"), "7:20", []string{"acl.rules[0].operations[0]", "IsMountPoint"}},
		"SetAttachState, which is SetDiskState":  {rule("disk-*", "SetAttachState"), "7:20", []string{"SetAttachState"}},
		"DismountVolume, which is UnmountVolume": {rule("volume-*", "DismountVolume"), "7:20", []string{"DismountVolume"}},
		"an operation in other letters":          {rule("filesystem-*", "mkdir"), "7:20", []string{"mkdir"}},
		"an operation of another group":          {rule("filesystem-*", "FormatVolume"), "7:20", []string{"FormatVolume"}},
		"a pipe of a version that nobody had":    {rule("filesystem-v3", "Mkdir"), "6:15", []string{"filesystem-v3"}},
		"a field of a request as a limit":        {rule("volume-v1beta1", "FormatVolume") + "      volume_id: x\n", "", []string{"volume_id"}},
		"paths by the name of a request's field": {rule("filesystem-*", "CreateSymlink") + "      sourcePaths: ['C:\\x']\n", "", []string{"sourcePaths"}},
		"a caller by an older name":              {strings.Replace(rule("filesystem-*", "Mkdir"), "serviceAccount:", "serviceaccount:", 1), "", []string{"serviceaccount"}},
		"who is named, beside the rules":         {"requestPolicy:\n  named:\n    disk: {PartitionDisk: {pods: {storage: {csi-node: [{}]}}}}\n", "5:5", []string{"requestPolicy.named", "acl.rules"}},
		"a parameter that there is not":          {"requestPolicy:\n  allowed: true\n", "", []string{"allowed"}},
		"a key of the policy at the top":         {"named: {}\n", "", []string{"named"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "proxy.yaml")
			if err := os.WriteFile(file, []byte(checkHead+c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			stderr := new(harness.Output)
			sockets := filepath.Join(shortDir(t), "s")
			if code := run(t.Context(), []string{"--socket-dir", sockets, "--config", file}, io.Discard, stderr); code != 1 {
				t.Errorf("exit code %d", code)
			}
			text := strings.ReplaceAll(stderr.String(), `\"`, `"`)
			if c.at != "" {
				c.want = append(c.want, fmt.Sprintf("%s:%s: ", file, c.at))
			} else if !regexp.MustCompile(regexp.QuoteMeta(file) + `:\d+:\d+: |line \d+`).MatchString(text) {
				t.Errorf("no place in the file is named:\n%s", text)
			}
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q is not in\n%s", want, text)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(sockets, "*.sock")); len(left) != 0 {
				t.Errorf("pipes were opened: %q", left)
			}
		})
	}
}
