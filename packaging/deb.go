package main

import (
	"compress/gzip"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
)

// writeDeb writes a package for Debian and its derivatives: the program, a unit for systemd
// that starts it as a user of its own, the pages and the completions.
func (r *release) writeDeb(b built, f *os.File) error {
	pages, err := os.MkdirTemp("", "tablerock-deb-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(pages)
	contents, err := r.debFiles(b, pages)
	if err != nil {
		return err
	}
	ours := func(name string) string { return filepath.Join(r.root, "packaging", "files", name) }
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "tablerock", Arch: b.arch, Platform: b.os, Version: r.version, MTime: r.time,
		Section: "database", Priority: "optional", Maintainer: "The Tablerock authors <noreply@tablerock.invalid>", License: "MIT",
		Homepage: "https://github.com/tablerock-db/tablerock",
		Description: "server and command line for Azure tables\n" +
			"Tablerock stores the tables of the Azure Table data model in a directory. Its\n" +
			"server speaks the Azure Table protocol, and its command line creates, queries,\n" +
			"imports and exports tables.",
		Overridables: nfpm.Overridables{
			Contents: contents,
			Scripts:  nfpm.Scripts{PostInstall: ours("postinst"), PreRemove: ours("prerm"), PostRemove: ours("postrm")},
		},
	})
	if err := nfpm.PrepareForPackager(info, "deb"); err != nil {
		return err
	}
	return deb.Default.Package(info, f)
}

// debFiles returns the files of the package. It writes compressed pages to the directory
// pages.
func (r *release) debFiles(b built, pages string) (files.Contents, error) {
	var list files.Contents
	add := func(from, to string, mode fs.FileMode) {
		list = append(list, &files.Content{Source: from, Destination: to, FileInfo: &files.ContentFileInfo{Mode: mode, MTime: r.time}})
	}
	add(b.path, "/usr/bin/tablerock", 0o755)
	add(filepath.Join(r.root, "LICENSE"), "/usr/share/doc/tablerock/copyright", 0o644)
	ours := filepath.Join(r.root, "packaging", "files")
	add(filepath.Join(ours, "tablerock.service"), "/usr/lib/systemd/system/tablerock.service", 0o644)
	add(filepath.Join(ours, "sysusers.conf"), "/usr/lib/sysusers.d/tablerock.conf", 0o644)
	add(filepath.Join(ours, "default"), "/etc/default/tablerock", 0o644)
	list[len(list)-1].Type = files.TypeConfigNoReplace
	completions := filepath.Join(b.docs, "completions")
	add(filepath.Join(completions, "tablerock.bash"), "/usr/share/bash-completion/completions/tablerock", 0o644)
	add(filepath.Join(completions, "_tablerock"), "/usr/share/zsh/vendor-completions/_tablerock", 0o644)
	add(filepath.Join(completions, "tablerock.fish"), "/usr/share/fish/vendor_completions.d/tablerock.fish", 0o644)
	man, err := os.ReadDir(filepath.Join(b.docs, "man"))
	if err != nil {
		return nil, err
	}
	for _, page := range man {
		to := filepath.Join(pages, page.Name()+".gz")
		if err := compress(filepath.Join(b.docs, "man", page.Name()), to); err != nil {
			return nil, err
		}
		add(to, path.Join("/usr/share/man/man1", page.Name()+".gz"), 0o644)
	}
	return list, nil
}

func compress(from, to string) error {
	return writeFile(to, func(f *os.File) error {
		z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
		if err != nil {
			return err
		}
		if err := copyFile(z, from); err != nil {
			return err
		}
		return z.Close()
	})
}
