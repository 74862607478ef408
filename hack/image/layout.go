package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// open unpacks an archive that write made into dir and returns the image's index and its name, such as pipeguard/webhook:1.2.3.
func open(archive, dir string) (index v1.ImageIndex, name string, err error) {
	if err := unpack(archive, dir); err != nil {
		return nil, "", err
	}
	path, err := layout.FromPath(dir)
	if err != nil {
		return nil, "", err
	}
	root, err := path.ImageIndex()
	if err != nil {
		return nil, "", err
	}
	list, err := root.IndexManifest()
	if err != nil {
		return nil, "", err
	}
	if len(list.Manifests) != 1 || !list.Manifests[0].MediaType.IsIndex() || list.Manifests[0].Annotations[shortName] == "" {
		return nil, "", errors.New("want one index with the annotation " + shortName + ", as make image writes it")
	}
	index, err = root.ImageIndex(list.Manifests[0].Digest)
	return index, list.Manifests[0].Annotations[shortName], err
}

// unpack writes the files of a tar archive below dir and nowhere else. It takes directories and regular files alone.
func unpack(archive, dir string) error {
	in, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer in.Close()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for r := tar.NewReader(in); ; {
		header, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read a tar archive: %w", err)
		}
		name := filepath.FromSlash(strings.TrimSuffix(header.Name, "/"))
		switch header.Typeflag {
		case tar.TypeDir:
			err = root.MkdirAll(name, 0o700)
		case tar.TypeReg:
			err = unpackFile(root, name, r)
		default:
			err = fmt.Errorf("%q is neither a file nor a directory", header.Name)
		}
		if err != nil {
			return err
		}
	}
}

func unpackFile(root *os.Root, name string, content io.Reader) (err error) {
	out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, content)
	return err
}
