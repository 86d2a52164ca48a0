package serve

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckReady checks files in directories that exist, do not, and are made with the data.
func TestCheckReady(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	usage := new(UsageError)
	for _, c := range []struct {
		config  Config
		refused bool
	}{
		{Config{}, false},
		{Config{ReadyFile: filepath.Join(dir, "ready.json"), Data: data}, false},
		{Config{ReadyFile: filepath.Join(data, "ready.json"), Data: data + "/"}, false},
		{Config{ReadyFile: filepath.Join(data, "ready.json"), Data: data, InMemory: true}, true},
		{Config{ReadyFile: filepath.Join(dir, "none", "ready.json"), Data: data}, true},
		{Config{ReadyFile: dir, Data: data}, true},
		{Config{ReadyFile: filepath.Join(dir, "sub"), Data: dir}, true},
		{Config{ReadyFile: os.DevNull, Data: data}, true},
	} {
		err := c.config.checkReady()
		if (err != nil) != c.refused || err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.As(err, &usage) {
			t.Errorf("%s with %s, in memory %t: %v, want an error %t", c.config.ReadyFile, c.config.Data, c.config.InMemory, err, c.refused)
		}
	}
}

// TestWriteReady fails to write ready files. The error names the file of the flag, and the temporary
// file does not stay.
func TestWriteReady(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "ready.json")
	if err := os.MkdirAll(filepath.Join(name, "file"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{name, filepath.Join(dir, "none", "ready.json")} {
		err := writeReady(name, &endpoint{}, account{name: "shop", keys: []string{"key"}})
		if err == nil || !strings.HasPrefix(err.Error(), "--ready-file: write "+name+": ") || strings.Contains(err.Error(), ".ready-") {
			t.Errorf("%v, want an error of %s alone", err, name)
		}
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("the directory has %v, %v", list, err)
	}
}
