package main

import (
	"archive/tar"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// Annotations of the index in an archive: the image's full name, by which containerd imports it, and the name without a
// registry, from which -push makes the name in another one.
const (
	fullName  = "io.containerd.image.name"
	shortName = "org.opencontainers.image.ref.name"
)

// images are the names of the images, each of which has an archive.
var images = []string{"webhook", "node"}

// archivePath is the file below output with the image of that name.
func archivePath(output, image string) string {
	return filepath.Join(output, "pipeguard-"+image+".oci.tar")
}

// tagOf is the tag of a release's images, as the chart names it too: v1.2.3 is 1.2.3.
func tagOf(version string) string { return strings.TrimPrefix(version, "v") }

// write packs the index as an OCI layout into output/pipeguard-NAME.oci.tar and returns its path.
func write(index v1.ImageIndex, image, version, output string) (string, error) {
	dir, err := os.MkdirTemp("", "pipeguard-layout-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return "", err
	}
	name := "pipeguard/" + image + ":" + tagOf(version)
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{fullName: "docker.io/" + name, shortName: name})); err != nil {
		return "", err
	}
	if err := os.MkdirAll(output, 0o755); err != nil {
		return "", err
	}
	archive := archivePath(output, image)
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
