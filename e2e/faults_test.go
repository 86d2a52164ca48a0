package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// faulty starts a server with rules and returns a client of it. maxRetries is as in
// policy.RetryOptions.
func faulty(t *testing.T, rules string, maxRetries int32) (*aztables.Client, *server) {
	t.Helper()
	needProgram(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "faults.json")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := launch(filepath.Join(dir, "data"), nil, "--faults", file, "--seed", "7")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.end(syscall.SIGKILL) })
	options := &aztables.ClientOptions{ClientOptions: policy.ClientOptions{
		Retry: policy.RetryOptions{MaxRetries: maxRetries, RetryDelay: time.Millisecond, MaxRetryDelay: 2 * time.Second},
	}}
	service := must(aztables.NewServiceClientFromConnectionString(s.connectionString, options))(t)
	return service.NewClient("Orders"), s
}

// TestRetries checks that the retries of the SDK succeed where requests fail.
func TestRetries(t *testing.T) {
	client, s := faulty(t, `[
		{"operation": "InsertEntity", "answer": "ServerBusy", "probability": 0.5, "times": 2},
		{"operation": "GetEntity", "answer": "OperationTimedOut", "probability": 0.3},
		{"operation": "GetEntity", "answer": "CutBefore", "probability": 0.2},
		{"operation": "*", "answer": "Delay", "probability": 0.2, "delay": "1ms", "maxDelay": "5ms"}]`, 8)
	must(client.CreateTable(t.Context(), nil))(t)
	for i := range 10 {
		row := fmt.Sprint(i)
		must(client.AddEntity(t.Context(), []byte(`{"PartitionKey":"p","RowKey":"`+row+`"}`), nil))(t)
		if got := get(t, client, "p", row); got["RowKey"] != row {
			t.Errorf("entity %s is %v", row, got)
		}
	}
	log := string(must(os.ReadFile(s.log))(t))
	for _, want := range []string{"answer=ServerBusy", "answer=OperationTimedOut", "answer=CutBefore", `answer="Delay `} {
		if !strings.Contains(log, want) {
			t.Errorf("no fault has %s: %s", want, log)
		}
	}
}

// TestUnknownOutcome inserts an entity whose connection is cut after the write: the SDK
// sends it again, and learns that it exists.
func TestUnknownOutcome(t *testing.T) {
	client, _ := faulty(t, `[{"operation": "InsertEntity", "answer": "CutAfter", "probability": 1, "times": 1}]`, 3)
	must(client.CreateTable(t.Context(), nil))(t)
	_, err := client.AddEntity(t.Context(), []byte(`{"PartitionKey":"p","RowKey":"1","Total":5}`), nil)
	wantRefusal(t, err, refusal{409, "EntityAlreadyExists"})
	if got := get(t, client, "p", "1"); got["Total"] != 5.0 {
		t.Errorf("the entity is %v", got)
	}
}

// TestNoRetries checks that a client without retries sees the failures.
func TestNoRetries(t *testing.T) {
	client, _ := faulty(t, `[{"operation": "InsertEntity", "answer": "ServerBusy", "probability": 1}]`, -1)
	must(client.CreateTable(t.Context(), nil))(t)
	_, err := client.AddEntity(t.Context(), []byte(`{"PartitionKey":"p","RowKey":"1"}`), nil)
	wantRefusal(t, err, refusal{503, "ServerBusy"})
}
