package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// toolsPage is the page on tools.
const toolsPage = "../docs/tools.md"

// pageBlock is a block of code of a section.
type pageBlock struct{ language, text string }

// pageBlocks returns the blocks of code in a section of the page on tools.
func pageBlocks(t *testing.T, section string) []pageBlock {
	t.Helper()
	text, err := os.ReadFile(toolsPage)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "\n## "+section+"\n")
	rest, _, _ = strings.Cut(rest, "\n## ")
	var blocks []pageBlock
	for _, m := range regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$").FindAllStringSubmatch(rest, -1) {
		blocks = append(blocks, pageBlock{m[1], m[2]})
	}
	if !ok || len(blocks) == 0 {
		t.Fatalf("%s has no section %q with code", toolsPage, section)
	}
	return blocks
}

// TestWorkflow runs the steps of the workflow for GitHub Actions that build and start the
// program from the last commit, and uses the connection string that they set.
func TestWorkflow(t *testing.T) {
	var workflow struct {
		Jobs map[string]struct {
			Steps []struct{ Name, Uses, Run string }
		}
	}
	if err := yaml.Unmarshal([]byte(pageBlocks(t, "GitHub Actions")[0].text), &workflow); err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	temp := t.TempDir()
	env := append(os.Environ(), "RUNNER_TEMP="+temp, "GITHUB_ENV="+temp+"/env", "TABLEROCK_LISTEN=127.0.0.1:0",
		"GOFLAGS=-buildvcs=false", // as .ci/run, to link the packages that it has compiled
		"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
		"GIT_CONFIG_KEY_1=url.file://"+root+".insteadOf", "GIT_CONFIG_VALUE_1=https://github.com/tablerock-db/tablerock")
	t.Cleanup(func() { endServer(t, filepath.Join(temp, "ready.json")) })
	names := []string{}
	for _, step := range workflow.Jobs["test"].Steps {
		if step.Run == "" || step.Name == "Test" {
			continue
		}
		names = append(names, step.Name)
		cmd := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail", "-c", step.Run)
		cmd.Env, cmd.Dir = env, temp
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("the step %q: %v: %s", step.Name, err, text)
		}
	}
	if want := []string{"Build Tablerock", "Start Tablerock"}; !slices.Equal(names, want) {
		t.Fatalf("the steps are %q, want %q", names, want)
	}
	set, err := os.ReadFile(filepath.Join(temp, "env"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(temp, "bin/tablerock"), "table", "create", "Orders")
	cmd.Env = append(env, strings.Split(strings.TrimSpace(string(set)), "\n")...)
	if text, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(text), "created table Orders in http://127.0.0.1:") {
		t.Errorf("the creation of a table: %v: %s", err, text)
	}
}

// endServer ends the server of a ready file, if there is one.
func endServer(t *testing.T, ready string) {
	t.Helper()
	text, err := os.ReadFile(ready)
	if err != nil {
		return
	}
	var server struct{ PID int }
	if err := json.Unmarshal(text, &server); err != nil || server.PID == 0 {
		t.Errorf("the ready file is %s (%v)", text, err)
		return
	}
	p, err := os.FindProcess(server.PID)
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		t.Error(err)
	}
}

// TestReadmeQuery runs the commands of the first query in README.md with the program of the
// archive, on another port.
func TestReadmeQuery(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, ok := strings.Cut(string(text), "**A first query.**")
	_, block, ok2 := strings.Cut(block, "\n```console\n")
	block, _, ok3 := strings.Cut(block, "```")
	if !ok || !ok2 || !ok3 || !strings.Contains(block, "$ tablerock serve &\n") {
		t.Fatal("README.md has no first query with a server")
	}
	dir := t.TempDir()
	untarGzip(t, packageFile(t, ".tar.gz"), dir)
	at, ready := freeAddress(t), filepath.Join(dir, "ready.json")
	t.Cleanup(func() { endServer(t, ready) })
	script := strings.NewReplacer(
		"$ ", "",
		"tablerock serve &", `tablerock serve >log 2>&1 & until [ -s ready.json ]; do kill -0 $! && sleep 0.05; done`,
		"=UseDevelopmentStorage=true", fmt.Sprintf("='AccountName=%s;AccountKey=%s;TableEndpoint=http://%s/%[1]s'", developmentAccount, developmentKey, at),
	).Replace(block)
	cmd := exec.CommandContext(t.Context(), "bash", "-e", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "TABLEROCK_LISTEN="+at, "TABLEROCK_ADMIN=off", "TABLEROCK_READY_FILE="+ready)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), `"Name":"Aiko","Height":1.58`) {
		t.Errorf("the first query: %v: %s\n%s", err, out, script)
	}
}

// TestComposePage compares the compose file of the page with compose.yaml.
func TestComposePage(t *testing.T) {
	var file struct {
		Services map[string]struct {
			DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
			Environment map[string]string
			Networks    map[string]struct{ Aliases []string }
		}
	}
	if err := yaml.Unmarshal([]byte(pageBlocks(t, "Docker Compose")[0].text), &file); err != nil {
		t.Fatal(err)
	}
	app := file.Services["app"]
	own, err := os.ReadFile("compose.yaml")
	if err == nil {
		err = yaml.Unmarshal(own, &file)
	}
	if err != nil {
		t.Fatal(err)
	}
	server, ok := file.Services["tablerock"]
	if !ok || app.DependsOn["tablerock"].Condition != "service_healthy" {
		t.Errorf("app depends on %v; compose.yaml has the services %v", app.DependsOn, file.Services)
	}
	aliases := server.Networks["default"].Aliases
	want := fmt.Sprintf("AccountName=%s;AccountKey=%s;TableEndpoint=http://%s:10002/%[1]s;", developmentAccount, developmentKey, strings.Join(aliases, ""))
	if got := app.Environment["AZURE_STORAGE_CONNECTION_STRING"]; !strings.HasSuffix(got, want) {
		t.Errorf("app connects with %s, want %s", got, want)
	}
}

// TestContainerPages checks that each program that starts a container uses the image's name,
// its port, the variable of compose.yaml and the path of the health check.
func TestContainerPages(t *testing.T) {
	compose := readCompose(t)
	blocks := append(pageBlocks(t, "Testcontainers"), pageBlocks(t, ".NET Aspire")...)
	languages := []string{}
	for _, b := range blocks {
		languages = append(languages, b.language)
		for name := range compose.Environment {
			if !strings.Contains(b.text, `"`+name+`"`) && !strings.Contains(b.text, " "+name+":") {
				t.Errorf("%s: %q does not set %s", toolsPage, b.text, name)
			}
		}
		for _, want := range []string{`"tablerock`, "latest", "10002", `"/healthz"`, developmentAccount} {
			if !strings.Contains(b.text, want) {
				t.Errorf("%s: %q does not have %s", toolsPage, b.text, want)
			}
		}
	}
	if want := []string{"golang", "java", "csharp", "js", "csharp"}; !slices.Equal(languages, want) {
		t.Errorf("the languages are %q, want %q", languages, want)
	}
	var task map[string]any
	if err := json.Unmarshal([]byte(pageBlocks(t, "Visual Studio Code")[0].text), &task); err != nil {
		t.Errorf("tasks.json: %v", err)
	}
}
