package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	// imageUser is the user of the server in a container. It owns the data.
	imageUser = 65532
	// imageData is the volume with the data.
	imageData = "/data"
	// imageName is the name of an image without its version.
	imageName = "tablerock"
)

// writeImage writes an archive with one image, by the Image Layout Specification of the
// Open Container Initiative. It contains manifest.json too, so that older versions of
// "docker load" read it.
func (r *release) writeImage(b built, f *os.File) error {
	img, err := r.image(b)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tablerock-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	to, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	tags := []string{imageName + ":" + r.tag(), imageName + ":latest"}
	err = to.AppendImage(img, layout.WithPlatform(v1.Platform{OS: b.os, Architecture: b.arch}), layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": r.tag(),
		"io.containerd.image.name":          "docker.io/library/" + tags[1],
	}))
	if err != nil {
		return err
	}
	if err := writeDockerManifest(to, img, tags); err != nil {
		return err
	}
	return r.tarTree(f, dir)
}

// tag returns the version as the tag of an image, in which + is not allowed.
func (r *release) tag() string {
	b := []byte(r.version)
	for i := range b {
		if b[i] == '+' {
			b[i] = '_'
		}
	}
	return string(b)
}

// image returns an image of one layer on nothing.
func (r *release) image(b built) (v1.Image, error) {
	text, err := r.layer(b)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err = mutate.Append(img, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: r.time}, CreatedBy: "packaging/build"},
	})
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = b.os, b.arch, v1.Time{Time: r.time}
	config.Config = v1.Config{
		User:       fmt.Sprintf("%d:%d", imageUser, imageUser),
		Entrypoint: []string{"/tablerock"},
		Cmd:        []string{"serve"},
		Env: []string{
			"PATH=/",
			"TABLEROCK_DATA=" + imageData,
			"TABLEROCK_LISTEN=0.0.0.0:10002",
			"TABLEROCK_ADMIN=127.0.0.1:10012",
		},
		ExposedPorts: map[string]struct{}{"10002/tcp": {}},
		Volumes:      map[string]struct{}{imageData: {}},
		WorkingDir:   imageData,
		StopSignal:   "SIGTERM",
		Healthcheck: &v1.HealthConfig{
			Test:     []string{"CMD", "/tablerock", "healthcheck", "--quiet"},
			Interval: 10 * time.Second, Timeout: 6 * time.Second, StartPeriod: 30 * time.Second, Retries: 3,
		},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "Tablerock",
			"org.opencontainers.image.version":  r.version,
			"org.opencontainers.image.revision": r.commit,
			"org.opencontainers.image.licenses": "MIT",
		},
	}
	return mutate.ConfigFile(img, config)
}

// layer returns the files of the image: the program, the certificates that it trusts, the
// user, and the directory of the data.
func (r *release) layer(b built) ([]byte, error) {
	program, err := os.ReadFile(b.path)
	if err != nil {
		return nil, err
	}
	user := fmt.Appendf(nil, "root:x:0:0:root:/:/\ntablerock:x:%d:%d:Tablerock:%s:/\n", imageUser, imageUser, imageData)
	group := fmt.Appendf(nil, "root:x:0:\ntablerock:x:%d:\n", imageUser)
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range []struct {
		name  string
		text  []byte // nil for a directory
		mode  fs.FileMode
		owner int
	}{
		{"data/", nil, 0o700, imageUser},
		{"etc/", nil, 0o755, 0},
		{"etc/group", group, 0o644, 0},
		{"etc/passwd", user, 0o644, 0},
		{"etc/ssl/", nil, 0o755, 0},
		{"etc/ssl/certs/", nil, 0o755, 0},
		{"etc/ssl/certs/ca-certificates.crt", roots(), 0o644, 0},
		{"tablerock", program, 0o755, 0},
	} {
		h := &tar.Header{
			Typeflag: tar.TypeReg, Name: e.name, Mode: int64(e.mode), Size: int64(len(e.text)), ModTime: r.time,
			Uid: e.owner, Gid: e.owner, Format: tar.FormatPAX,
		}
		if e.text == nil {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.text); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), w.Close()
}

// roots returns the root certificates of Mozilla in PEM. It leaves out the few that are
// trusted under conditions, which PEM cannot express.
func roots() []byte {
	var text []byte
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})...)
		}
	}
	return text
}

// writeDockerManifest adds manifest.json to a layout.
func writeDockerManifest(to layout.Path, img v1.Image, tags []string) error {
	m, err := img.Manifest()
	if err != nil {
		return err
	}
	blob := func(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }
	var layers []string
	for _, l := range m.Layers {
		layers = append(layers, blob(l.Digest))
	}
	text, err := json.Marshal([]map[string]any{{"Config": blob(m.Config.Digest), "RepoTags": tags, "Layers": layers}})
	if err != nil {
		return err
	}
	return to.WriteFile("manifest.json", text, 0o644)
}

// tarTree writes the files below dir in the order of their names.
func (r *release) tarTree(f *os.File, dir string) error {
	w := tar.NewWriter(f)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return r.addToTar(w, entry{filepath.ToSlash(name), path, 0o644})
	})
	if err != nil {
		return err
	}
	return w.Close()
}
