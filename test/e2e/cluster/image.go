//go:build e2e

package cluster

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/pipeguard/pipeguard/test/harness"
)

// ProgramImage is the image of test/e2e/program.
const ProgramImage = "docker.io/pipeguard/e2e-program:1"

// buildProgram compiles test/e2e/program and packs it into an image.
func (c *Cluster) buildProgram(ctx context.Context) (archive string, err error) {
	exe, err := harness.Build(ctx, c.dir, "-trimpath", "./test/e2e/program")
	if err != nil {
		return "", err
	}
	binary, err := os.ReadFile(exe)
	if err != nil {
		return "", err
	}
	archive = c.path("program.tar")
	content, err := imageArchive(ProgramImage, "program", binary)
	if err != nil {
		return "", fmt.Errorf("pack the program of the tests: %w", err)
	}
	return archive, os.WriteFile(archive, content, 0o600)
}

// imageArchive packs one program as an image in the format of `docker save`, which ctr imports.
func imageArchive(name, program string, binary []byte) ([]byte, error) {
	layer, err := pack(file{program, 0o755, binary})
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"config":       map[string]any{"Entrypoint": []string{"/" + program}, "User": "65532:65532"},
		"rootfs":       map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal([]any{map[string]any{
		"Config": "config.json", "RepoTags": []string{name}, "Layers": []string{"layer.tar"},
	}})
	if err != nil {
		return nil, err
	}
	return pack(file{"manifest.json", 0o644, manifest}, file{"config.json", 0o644, config}, file{"layer.tar", 0o644, layer})
}

type file struct {
	name    string
	mode    int64
	content []byte
}

func pack(files ...file) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.content))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), w.Close()
}

// ctr runs containerd's client on the images and containers of Kubernetes.
func (c *Cluster) ctr(ctx context.Context, args ...string) (string, error) {
	return c.output(ctx, filepath.Join(harness.Tools(), "ctr"), append([]string{"--namespace=k8s.io"}, args...)...)
}

// Import gives the node the images of an archive.
func (c *Cluster) Import(ctx context.Context, archive string) error {
	_, err := c.ctr(ctx, "images", "import", archive)
	return err
}

// Tag gives an image of the node a second name.
func (c *Cluster) Tag(ctx context.Context, image, name string) error {
	_, err := c.ctr(ctx, "images", "tag", image, name)
	return err
}
