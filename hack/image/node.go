package main

import (
	"archive/tar"
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// buildNode writes pipeguard-node.oci.tar and returns its path. No platform has a version: a HostProcess container runs on
// the node's own Windows, whichever it is.
func buildNode(version, source, output string) (string, error) {
	files, err := compile(source, "windows", "amd64", "./cmd/proxy", "./cmd/pipeguard")
	if err != nil {
		return "", err
	}
	if files["LICENSE"], err = os.ReadFile(filepath.Join(source, "LICENSE")); err != nil {
		return "", err
	}
	index, err := nodeIndex(version, files)
	if err != nil {
		return "", err
	}
	return write(index, "node", version, output)
}

// nodeIndex is the node's image, with files in its root.
func nodeIndex(version string, files map[string][]byte) (v1.ImageIndex, error) {
	image, err := assembleNode(version, files)
	if err != nil {
		return nil, fmt.Errorf("assemble for windows/amd64: %w", err)
	}
	return mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{
		Add:        image,
		Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "windows", Architecture: "amd64"}},
	}), nil
}

// assembleNode puts files into the root of an image of two layers. The first is what Windows asks of any base, as in
// https://github.com/microsoft/windows-host-process-containers-base-image; the second is as BuildKit writes one above it.
func assembleNode(version string, files map[string][]byte) (v1.Image, error) {
	base := map[string][]byte{}
	for _, name := range hives {
		base[hivePath(name)] = hive(name)
	}
	content := map[string][]byte{}
	for name, text := range files {
		content["Files/"+name] = text
	}
	lower, err := windowsLayer(base)
	if err != nil {
		return nil, err
	}
	upper, err := windowsLayer(content, "Hives") // changes to the registry: none, but the directory is looked for
	if err != nil {
		return nil, err
	}
	image, err := stack(lower, upper)
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(image, &v1.ConfigFile{
		OS:           "windows",
		Architecture: "amd64",
		Created:      v1.Time{Time: epoch},
		RootFS:       must(image.ConfigFile()).RootFS,
		// The runtime puts the root of the container into PATH.
		Config: v1.Config{Entrypoint: []string{"proxy.exe"}, Labels: labels("pipeguard-node", version)},
	})
}

// windowsLayer is a tar archive of files, with the directories around them and some more, in lexical order: each directory
// before what is in it.
func windowsLayer(files map[string][]byte, directories ...string) ([]byte, error) {
	entries := map[string][]byte{}
	for _, name := range directories {
		entries[name] = nil
	}
	for name, content := range files {
		entries[name] = content
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			entries[dir] = nil
		}
	}
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		_, isFile := files[name]
		if err := w.WriteHeader(windowsHeader(name, isFile, len(entries[name]))); err != nil {
			return nil, err
		}
		if _, err := w.Write(entries[name]); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

// What an importing node reads beside a name, a size and times.
// https://github.com/microsoft/go-winio/blob/main/backuptar/tar.go
const (
	attributes = "MSWINDOWS.fileattr"
	security   = "MSWINDOWS.rawsd"
)

// windowsHeader describes a file or directory that SYSTEM and administrators may change and users may read and run.
func windowsHeader(name string, isFile bool, size int) *tar.Header {
	const full, run = 0x1F01FF, 0x1200A9 // FILE_ALL_ACCESS; FILE_GENERIC_READ | FILE_GENERIC_EXECUTE
	header := &tar.Header{
		Typeflag: tar.TypeDir, Name: name, Mode: 0o755, Format: tar.FormatPAX,
		ModTime: epoch, AccessTime: epoch, ChangeTime: epoch,
	}
	flags, attribute := byte(inherited), "16" // FILE_ATTRIBUTE_DIRECTORY
	if isFile {
		header.Typeflag, header.Size = tar.TypeReg, int64(size)
		flags, attribute = 0, "32" // FILE_ATTRIBUTE_ARCHIVE
	}
	header.PAXRecords = map[string]string{attributes: attribute}
	if path.Dir(name) != "." { // Files and Hives are names within the archive, not directories of the container
		sd := descriptor(ace{flags, full, administrators}, ace{flags, full, system}, ace{flags, run, users})
		header.PAXRecords[security] = base64.StdEncoding.EncodeToString(sd)
	}
	return header
}
