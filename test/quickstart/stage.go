package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pipeguard/pipeguard/test/harness"
)

const (
	readyLimit = 60 * time.Second // the machine may be busy; usually it takes less than one
	stopLimit  = 30 * time.Second // more than the proxy gives calls in flight
)

// stage is what the story plays on: the programs, running, and where they are.
type stage struct {
	dir      string
	programs programs
	webhook  *webhook
	proxy    *proxy
	params   string // the webhook's
	config   string // the proxy's
	both     pair   // of a later chapter
}

// setUp builds and starts the programs and waits until they are ready.
func setUp(ctx context.Context, s *story, dir string) (st *stage, err error) {
	st = &stage{dir: dir}
	defer func() {
		if err != nil {
			st.clear(s)
			logsOf(s, st.started()...)
		}
	}()
	s.printf("\nBuilding webhook, proxy and pipeguard … ")
	began := time.Now()
	if st.programs, err = build(ctx, dir); err != nil {
		return st, err
	}
	s.printf("%.1f s\nStarting webhook and proxy … ", time.Since(began).Seconds())
	began = time.Now()
	params, err := testdata.ReadFile("testdata/parameters.yaml")
	if err != nil {
		return st, err
	}
	me, err := thisCaller()
	if err != nil {
		return st, err
	}
	st.params, st.config = string(params), strings.ReplaceAll(proxyConfig, "CALLER", me)
	if st.proxy, err = startProxy(dir, "proxy", st.programs.proxy, st.config); err != nil {
		return st, err
	}
	if st.webhook, err = startWebhook(dir, "webhook", st.programs.webhook, params); err != nil {
		return st, err
	}
	if err := st.webhook.Await(ctx, readyLimit, st.webhook.isReady); err != nil {
		return st, err
	}
	if err := st.proxy.Await(ctx, readyLimit, st.proxy.isReady); err != nil {
		return st, err
	}
	s.printf("%.1f s\n", time.Since(began).Seconds())
	return st, nil
}

// thisCaller describes this program as a caller in a proxy's configuration.
func thisCaller() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	if exe, err = filepath.EvalSymlinks(exe); err != nil {
		return "", err
	}
	return fmt.Sprintf(`{user: "uid:%d", exe: %q}`, os.Getuid(), exe), nil
}

// A rule that spells out FormatVolume beside user and exe also names that program for the request policy.
const proxyConfig = `apiVersion: pipeguard.dev/v1alpha1
kind: ProxyConfig
acl:
  rules:
    - name: directories
      pipes: ["filesystem-*"]
      operations: [PathExists, Mkdir, CreateSymlink, IsSymlink]
      callers: [CALLER]
    - name: volumes
      pipes: ["volume-*"]
      operations: [ListVolumesOnDisk, GetVolumeStats]
      callers: [CALLER]
    - name: old-volumes
      pipes: ["volume-v1beta3"]
      operations: [FormatVolume]
      callers: [CALLER]
    - name: disks
      pipes: ["disk-*"]
      operations: ["*"]
      callers: [CALLER]
    - name: shares
      pipes: ["smb-*"]
      operations: ["*"]
      callers: [CALLER]
`

// stop ends all programs in order and checks how they ended.
func (st *stage) stop(s *story) {
	s.chapter("The end")
	s.step("All programs are asked to stop",
		"SIGTERM, as a service manager sends it. Calls in flight finish, the log is closed, the exit code is 0.",
		func() error {
			var faults []error
			for _, p := range st.started() {
				err := p.Stop(stopLimit)
				if err == nil {
					s.show(p.Name + ": exit code 0")
				}
				faults = append(faults, err)
			}
			return errors.Join(faults...)
		})
}

// clear ends what still runs, and prints the logs if something was not as expected.
func (st *stage) clear(s *story) {
	for _, p := range st.started() {
		p.Kill()
	}
	if len(s.failed) > 0 {
		logsOf(s, st.started()...)
	}
}

func (st *stage) started() (list []*harness.Process) {
	for _, w := range []*webhook{st.webhook, st.both.webhook} {
		if w != nil && w.Process != nil {
			list = append(list, w.Process)
		}
	}
	for _, p := range []*proxy{st.proxy, st.both.proxy} {
		if p != nil && p.Process != nil {
			list = append(list, p.Process)
		}
	}
	return list
}

// files are the records of all programs.
func (st *stage) files() (files []string) {
	files = append(files, st.proxy.records, st.webhook.records)
	if st.both.webhook != nil {
		files = append(files, st.both.webhook.records)
	}
	if st.both.proxy != nil {
		files = append(files, st.both.proxy.records)
	}
	return files
}
