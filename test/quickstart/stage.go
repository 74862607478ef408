package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	readyLimit = 60 * time.Second // the machine may be busy; usually it takes less than one
	stopLimit  = 30 * time.Second // more than the proxy gives calls in flight
)

// stage is what the story plays on: the programs, running, and where they are.
type stage struct {
	programs  programs
	webhook   *process
	proxy     *process
	api       *apiServer
	authority string // file with the certificate authority that the webhook made
	socketDir string
	params    string // the webhook's
	config    string // the proxy's
	auditFile string // the proxy's
	// reviewsFile has the webhook's records.
	reviewsFile string
}

// setUp builds and starts the programs and waits until they are ready.
func setUp(ctx context.Context, s *story, dir string) (st *stage, err error) {
	st = &stage{socketDir: filepath.Join(dir, "pipes"), auditFile: filepath.Join(dir, "audit.jsonl")}
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
	if err := st.startProxy(dir); err != nil {
		return st, err
	}
	if err := st.startWebhook(dir); err != nil {
		return st, err
	}
	if err := st.webhook.await(ctx, readyLimit, st.webhookIsReady); err != nil {
		return st, err
	}
	if err := st.proxy.await(ctx, readyLimit, st.proxyIsReady); err != nil {
		return st, err
	}
	s.printf("%.1f s\n", time.Since(began).Seconds())
	return st, nil
}

// startProxy writes a configuration that allows this very program something, and starts the proxy with it.
func (st *stage) startProxy(dir string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	if exe, err = filepath.EvalSymlinks(exe); err != nil {
		return err
	}
	st.config = fmt.Sprintf(proxyConfig, os.Getuid(), exe)
	file := filepath.Join(dir, "proxy.yaml")
	if err := os.WriteFile(file, []byte(st.config), 0o600); err != nil {
		return err
	}
	st.proxy, err = start("proxy", st.programs.proxy,
		"--host", "memory", "--socket-dir", st.socketDir, "--config", file, "--audit-log", st.auditFile)
	return err
}

const proxyConfig = `apiVersion: pipeguard.dev/v1alpha1
kind: ProxyConfig
acl:
  rules:
    - name: directories
      pipes: ["filesystem-*"]
      operations: [PathExists, Mkdir, CreateSymlink, IsSymlink]
      callers:
        - user: "uid:%[1]d"
          exe: %[2]q
    - name: volumes
      pipes: ["volume-*"]
      operations: [ListVolumesOnDisk, GetVolumeStats]
      callers:
        - user: "uid:%[1]d"
          exe: %[2]q
    - name: old-volumes
      pipes: ["volume-v1beta3"]
      operations: [FormatVolume]
      callers:
        - user: "uid:%[1]d"
          exe: %[2]q
    - name: shares
      pipes: ["smb-*"]
      operations: ["*"]
      callers:
        - user: "uid:%[1]d"
          exe: %[2]q
`

// proxyIsReady looks for the sockets without connecting: a connection would leave a record.
func (st *stage) proxyIsReady(context.Context) error {
	for _, name := range []string{"filesystem-v1", "filesystem-v1alpha1", "volume-v1", "volume-v1beta3", "smb-v1", "system-v1alpha1"} {
		info, err := os.Stat(filepath.Join(st.socketDir, "csi-proxy-"+name+".sock"))
		if err != nil {
			return err
		}
		if info.Mode().Type() != fs.ModeSocket {
			return fmt.Errorf("%s is no socket", info.Name())
		}
	}
	return nil
}

// stop ends both programs in order and checks how they ended.
func (st *stage) stop(s *story) {
	s.chapter("The end")
	s.step("Both programs are asked to stop",
		"SIGTERM, as a service manager sends it. Calls in flight finish, the log is closed, the exit code is 0.",
		func() error {
			err := errors.Join(st.proxy.stop(stopLimit), st.webhook.stop(stopLimit))
			if err == nil {
				s.show("proxy:   exit code 0\nwebhook: exit code 0")
			}
			return err
		})
}

// clear ends what still runs, and prints the logs if something was not as expected.
func (st *stage) clear(s *story) {
	for _, p := range st.started() {
		p.kill()
	}
	if len(s.failed) > 0 {
		logsOf(s, st.started()...)
	}
}

func (st *stage) started() (list []*process) {
	for _, p := range []*process{st.webhook, st.proxy} {
		if p != nil {
			list = append(list, p)
		}
	}
	return list
}
