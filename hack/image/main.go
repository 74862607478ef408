// Command image builds the webhook's container image without a container engine and without a registry:
// one static binary on an empty base, for each platform, in one OCI archive.
//
// It is a module of its own, so that the product does not depend on what builds its image.
package main

import (
	"archive/tar"
	"bytes"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// user is the numeric account that the program runs as. It is numeric so that a kubelet can prove that it is not root.
const user = "65532:65532"

// epoch dates every file, so that equal sources give an equal image.
var epoch = time.Unix(0, 0).UTC()

func main() {
	log.SetFlags(0)
	version := flag.String("version", "v0.1.0-dev", "release to build")
	source := flag.String("source", ".", "root of the product's module")
	output := flag.String("output", "dist", "directory for the archive")
	flag.Parse()
	archive, err := build(*version, *source, *output)
	if err != nil {
		log.Fatalf("image: %v", err)
	}
	fmt.Println(archive)
}

// build writes dist/pipeguard-webhook.oci.tar and returns its path.
func build(version, source, output string) (string, error) {
	var index v1.ImageIndex = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range []string{"amd64", "arm64"} {
		binary, err := compile(version, source, arch)
		if err != nil {
			return "", fmt.Errorf("compile for linux/%s: %w", arch, err)
		}
		image, err := assemble(version, arch, binary)
		if err != nil {
			return "", fmt.Errorf("assemble for linux/%s: %w", arch, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	return write(index, version, output)
}

// compile returns the static binary of the webhook for one architecture.
func compile(version, source, arch string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "pipeguard-image-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "webhook")
	cmd := exec.Command("go", "build", "-trimpath", "-o", out,
		"-ldflags", "-s -w -X github.com/pipeguard/pipeguard/internal/version.number="+version, "./cmd/webhook")
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	if message, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, message)
	}
	return os.ReadFile(out)
}

// assemble puts the binary and an account file into one layer on an empty base.
func assemble(version, arch string, binary []byte) (v1.Image, error) {
	content, err := layer(binary)
	if err != nil {
		return nil, err
	}
	opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	l, err := tarball.LayerFromOpener(opener, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if image, err = mutate.AppendLayers(image, l); err != nil {
		return nil, err
	}
	return mutate.ConfigFile(image, &v1.ConfigFile{
		OS:           "linux",
		Architecture: arch,
		Created:      v1.Time{Time: epoch},
		RootFS:       must(image.ConfigFile()).RootFS,
		Config: v1.Config{
			Entrypoint: []string{"/webhook"},
			User:       user,
			WorkingDir: "/",
			Labels: map[string]string{
				"org.opencontainers.image.title":    "pipeguard-webhook",
				"org.opencontainers.image.version":  version,
				"org.opencontainers.image.licenses": "Apache-2.0",
			},
		},
	})
}

// must returns the config file of an image that was just made in memory.
func must(config *v1.ConfigFile, err error) *v1.ConfigFile {
	if err != nil {
		panic(err) // an image built from values in memory always has a config
	}
	return config
}

// layer is a tar archive with the binary and the accounts.
func layer(binary []byte) ([]byte, error) {
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	files := []struct {
		name    string
		mode    int64
		content []byte
	}{
		{"etc/passwd", 0o644, []byte("nonroot:x:65532:65532:nonroot:/:/sbin/nologin\n")},
		{"webhook", 0o755, binary},
	}
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "etc/", Mode: 0o755, ModTime: epoch}); err != nil {
		return nil, err
	}
	for _, f := range files {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: epoch}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

// write packs the index as an OCI layout into one archive.
func write(index v1.ImageIndex, version, output string) (string, error) {
	dir, err := os.MkdirTemp("", "pipeguard-layout-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return "", err
	}
	// containerd names an imported image by this annotation.
	name := "pipeguard/webhook:" + strings.TrimPrefix(version, "v")
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"io.containerd.image.name":          "docker.io/" + name,
		"org.opencontainers.image.ref.name": name,
	})); err != nil {
		return "", err
	}
	if err := os.MkdirAll(output, 0o755); err != nil {
		return "", err
	}
	archive := filepath.Join(output, "pipeguard-webhook.oci.tar")
	return archive, pack(dir, archive)
}

// pack writes the files below dir into a tar archive, in lexical order and without dates or owners.
func pack(dir, archive string) (err error) {
	out, err := os.Create(archive)
	if err != nil {
		return err
	}
	defer func() {
		if e := out.Close(); err == nil {
			err = e
		}
	}()
	w := tar.NewWriter(out)
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, ModTime: epoch})
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content)), ModTime: epoch}); err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
	if err != nil {
		return err
	}
	return w.Close()
}
