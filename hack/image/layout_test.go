package main

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestAnArchiveIsUnpackedWhereItShouldAndNowhereElse(t *testing.T) {
	for fault, header := range map[string]tar.Header{
		"a file above":           {Typeflag: tar.TypeReg, Name: "../outside"},
		"a file at the root":     {Typeflag: tar.TypeReg, Name: "/outside"},
		"a directory above":      {Typeflag: tar.TypeDir, Name: "../outside/"},
		"a link":                 {Typeflag: tar.TypeSymlink, Name: "link", Linkname: ".."},
		"a link that is a file":  {Typeflag: tar.TypeLink, Name: "link", Linkname: "index.json"},
		"a device":               {Typeflag: tar.TypeChar, Name: "device"},
		"a file that is there":   {Typeflag: tar.TypeReg, Name: "index.json"},
		"a file in no directory": {Typeflag: tar.TypeReg, Name: "blobs/x"},
	} {
		var content bytes.Buffer
		w := tar.NewWriter(&content)
		for _, h := range []tar.Header{{Typeflag: tar.TypeReg, Name: "index.json"}, header} {
			if err := w.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		above := t.TempDir()
		archive, dir := filepath.Join(above, "a.tar"), filepath.Join(above, "in")
		if err := os.WriteFile(archive, content.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := unpack(archive, dir); err == nil {
			t.Errorf("%s is unpacked", fault)
		}
		if left, err := os.ReadDir(above); err != nil || len(left) != 2 {
			t.Errorf("%s: %d entries beside the directory, %v", fault, len(left), err)
		}
	}
}

func FuzzUnpackStaysInItsDirectory(f *testing.F) {
	f.Add("blobs/sha256/x", byte(tar.TypeReg), "", []byte("x"))
	f.Add("../x", byte(tar.TypeReg), "", []byte("x"))
	f.Add("a", byte(tar.TypeSymlink), "..", []byte{})
	f.Fuzz(func(t *testing.T, name string, kind byte, link string, text []byte) {
		var content bytes.Buffer
		w := tar.NewWriter(&content)
		if kind != tar.TypeReg {
			text = nil
		}
		if w.WriteHeader(&tar.Header{Typeflag: kind, Name: name, Linkname: link, Size: int64(len(text))}) != nil {
			return // a header that cannot be written
		}
		if _, err := w.Write(text); err != nil {
			return
		}
		if w.Close() != nil {
			return
		}
		above := t.TempDir()
		archive, dir := filepath.Join(above, "a.tar"), filepath.Join(above, "in")
		if err := os.WriteFile(archive, content.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		err := unpack(archive, dir)
		if left, e := os.ReadDir(above); e != nil || len(left) != 2 {
			t.Errorf("%q of type %q: %d entries, %v, %v", name, kind, len(left), e, err)
		}
	})
}
