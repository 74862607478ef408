package winsvc

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/windows"
)

func TestDirectoriesTakeNoEntriesFromAbove(t *testing.T) {
	for name, tt := range map[string]struct{ sddl, want string }{
		"private":  {privateSDDL, "D:PAI(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)"},
		"programs": {programsSDDL, "D:PAI(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1200a9;;;BU)"},
	} {
		descriptor, err := windows.SecurityDescriptorFromString(tt.sddl)
		if err != nil {
			t.Fatal(err)
		}
		if control, _, err := descriptor.Control(); err != nil || control&windows.SE_DACL_PROTECTED == 0 {
			t.Errorf("%s: control %#x, %v", name, control, err)
		}
		if got := descriptor.String(); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

// What comes of a descriptor on the disk is not looked at: Wine keeps a Unix mode of it.
func TestMakePrivateTakesADirectoryThatIsThere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "private")
	for range 2 {
		if err := MakePrivate(dir); err != nil {
			t.Fatal(err)
		}
	}
	if err := MakePrograms(dir); err != nil {
		t.Errorf("a directory that is there: %v", err)
	}
	if err := MakePrivate(`C:\windows\win.ini`); err == nil {
		t.Error("a file was taken for a directory")
	}
}

func TestAPrivateFileIsMadeOnceAndForOneself(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret.key")
	f, err := CreatePrivate(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("secret"); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if f, err := CreatePrivate(file); err == nil {
		_ = f.Close()
		t.Error("a file that is there was opened")
	}
	for range 2 {
		if err := MakeFilePrivate(file); err != nil {
			t.Error(err)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "secret" {
		t.Errorf("it holds %q, %v", text, err)
	}
	if err := MakeFilePrivate(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there was made private")
	}
}
