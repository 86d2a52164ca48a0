package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"gopkg.in/yaml.v3"

	"github.com/tablerock-db/tablerock/internal/sharedkey"
)

// The account of a server without accounts, with its public key.
const (
	developmentAccount = "devstoreaccount1"
	developmentKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// readImage returns the image of an archive.
func readImage(t *testing.T, name string) v1.Image {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dir := t.TempDir()
	untar(t, f, dir)
	at, err := layout.FromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	index, err := at.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("the index has %d images (%v), want one", len(manifest.Manifests), err)
	}
	img, err := at.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(img); err != nil {
		t.Fatal(err)
	}
	testDockerManifest(t, dir, img)
	return img
}

// testDockerManifest checks that manifest.json names the blobs of the image.
func testDockerManifest(t *testing.T, dir string, img v1.Image) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var list []struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	if err := json.Unmarshal(text, &list); err != nil || len(list) != 1 || len(list[0].Layers) != 1 {
		t.Fatalf("manifest.json is %s (%v)", text, err)
	}
	config, err := img.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	if list[0].Config != "blobs/sha256/"+config.Hex || !slices.Contains(list[0].RepoTags, "tablerock:latest") {
		t.Errorf("manifest.json is %s, want the config %s", text, config.Hex)
	}
	if _, err := os.Stat(filepath.Join(dir, list[0].Layers[0])); err != nil {
		t.Error(err)
	}
}

// container is an unpacked image. Its programs run as the image's user, with the unpacked
// files as their root, if this test is run by root.
type container struct {
	dir    string
	config v1.Config
	env    []string
}

func newContainer(t *testing.T, img v1.Image, env ...string) *container {
	t.Helper()
	file, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	files := mutate.Extract(img)
	defer files.Close()
	untar(t, files, dir)
	return &container{dir, file.Config, append(slices.Clone(file.Config.Env), env...)}
}

// command returns a command in the container.
func (c *container) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env, cmd.Dir = c.env, c.config.WorkingDir
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: c.dir, Credential: &syscall.Credential{Uid: imageUser, Gid: imageUser}}
		return cmd
	}
	cmd.Path, cmd.Dir = filepath.Join(c.dir, args[0]), filepath.Join(c.dir, c.config.WorkingDir)
	cmd.Env = append(cmd.Env, "TABLEROCK_DATA="+cmd.Dir)
	return cmd
}

// freeAddress returns an address of loopback on which nothing listens. A socket that does not
// listen keeps others from getting the port before the server has it.
func freeAddress(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	at, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", at.(*syscall.SockaddrInet4).Port)
}

// TestImage starts the server of the image with the settings of compose.yaml, waits until
// its health check passes, and creates a table. The table is there after a restart.
func TestImage(t *testing.T) {
	name := packageFile(t, ".oci.tar")
	img := readImage(t, name)
	compose := readCompose(t)
	testConfig(t, img, compose)
	at := freeAddress(t)
	c := newContainer(t, img, "TABLEROCK_LISTEN="+at, "TABLEROCK_ADMIN="+freeAddress(t))
	for key, value := range compose.Environment {
		c.env = append(c.env, key+"="+value)
	}
	testSize(t, name, c)
	for _, want := range []int{http.StatusNoContent, http.StatusConflict} {
		stop := c.serve(t)
		if got := createTable(t, at); got != want {
			t.Errorf("the creation of a table returns %d, want %d", got, want)
		}
		// docker exec runs a command so, which writes through the server.
		write := c.command(t.Context(), c.config.Entrypoint[0], "entity", "upsert", "Orders", `{"PartitionKey":"eu","RowKey":"0001"}`)
		if text, err := write.CombinedOutput(); err != nil || !bytes.Contains(text, []byte(`"RowKey":"0001"`)) {
			t.Errorf("a write in the container: %v: %s", err, text)
		}
		stop()
	}
}

// serve starts the server and returns when its health check passes.
func (c *container) serve(t *testing.T) (stop func()) {
	t.Helper()
	var log bytes.Buffer
	cmd := c.command(t.Context(), append(slices.Clone(c.config.Entrypoint), c.config.Cmd...)...)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		text, err := c.command(t.Context(), c.config.Healthcheck.Test[1:]...).CombinedOutput()
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			t.Fatalf("the health check fails: %v: %s; the server prints %s", err, text, &log)
		}
	}
	return func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server ends with %v: %s", err, &log)
		}
	}
}

// createTable returns the status of the creation of a table.
func createTable(t *testing.T, at string) int {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+at+"/"+developmentAccount+"/Tables", strings.NewReader(`{"TableName":"Orders"}`))
	if err != nil {
		t.Fatal(err)
	}
	q.Host = "azurite:10002" // as other services of compose.yaml call it
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Accept", "application/json;odata=nometadata")
	q.Header.Set("Prefer", "return-no-content")
	credential, err := sharedkey.NewCredential(developmentAccount, developmentKey)
	if err == nil {
		err = credential.SignRequest(q, time.Now())
	}
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode
}

// testConfig checks what a container runs, and that compose.yaml agrees.
func testConfig(t *testing.T, img v1.Image, compose composeService) {
	t.Helper()
	file, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c := file.Config
	if c.User != fmt.Sprintf("%d:%d", imageUser, imageUser) {
		t.Errorf("the user is %q", c.User)
	}
	if _, ok := c.Volumes[imageData]; !ok {
		t.Errorf("the volumes are %v, want %s", c.Volumes, imageData)
	}
	if !slices.Equal(compose.Healthcheck.Test, c.Healthcheck.Test) {
		t.Errorf("the health check of compose.yaml is %q, of the image %q", compose.Healthcheck.Test, c.Healthcheck.Test)
	}
	if !slices.Equal(compose.Volumes, []string{"tables:" + imageData}) || !slices.Equal(compose.Ports, []string{"127.0.0.1:10002:10002"}) {
		t.Errorf("compose.yaml has the volumes %q and the ports %q", compose.Volumes, compose.Ports)
	}
	for key := range compose.Environment {
		testVariable(t, key)
	}
}

// testSize checks that the archive has at most 2 MB more than the program.
func testSize(t *testing.T, name string, c *container) {
	t.Helper()
	archive, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Stat(filepath.Join(c.dir, "tablerock"))
	if err != nil {
		t.Fatal(err)
	}
	unpacked := int64(0)
	err = filepath.Walk(c.dir, func(_ string, info os.FileInfo, err error) error {
		if err == nil {
			unpacked += info.Size()
		}
		return err
	})
	if limit := program.Size() + 2_000_000; err != nil || archive.Size() > limit || unpacked > limit {
		t.Errorf("the archive has %d bytes and %d unpacked (%v), more than %d", archive.Size(), unpacked, err, limit)
	}
	certificates, err := os.ReadFile(filepath.Join(c.dir, "etc/ssl/certs/ca-certificates.crt"))
	if n := bytes.Count(certificates, []byte("BEGIN CERTIFICATE")); err != nil || n < 50 {
		t.Errorf("there are %d root certificates (%v), want more than 50", n, err)
	}
}

// TestImageRefusesPublicKey starts the image without settings: it does not open the account
// with the public key to other machines, and says how to go on.
func TestImageRefusesPublicKey(t *testing.T) {
	c := newContainer(t, readImage(t, packageFile(t, ".oci.tar")))
	text, err := c.command(t.Context(), append(slices.Clone(c.config.Entrypoint), c.config.Cmd...)...).CombinedOutput()
	if err == nil || !bytes.Contains(text, []byte("--insecure-dev-key")) {
		t.Errorf("the server ends with %v: %s; want an error that names --insecure-dev-key", err, text)
	}
}

type composeService struct {
	Environment map[string]string
	Ports       []string
	Volumes     []string
	Healthcheck struct{ Test []string }
}

func readCompose(t *testing.T) composeService {
	t.Helper()
	text, err := os.ReadFile("compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]composeService
		Volumes  map[string]any
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Services) != 1 || len(file.Volumes) != 1 {
		t.Fatalf("compose.yaml is %+v, want one service and one volume", file)
	}
	return file.Services["tablerock"]
}
