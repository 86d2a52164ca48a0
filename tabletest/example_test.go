package tabletest_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/server/faults"
	"github.com/tablerock-db/tablerock/tabletest"
)

// T replaces the *testing.T of a test, which an example does not have.
type T struct {
	testing.TB
	cleanups []func()
}

func (*T) Helper() {}

func (t *T) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }

func (t *T) end() {
	for i := len(t.cleanups) - 1; i >= 0; i-- {
		t.cleanups[i]()
	}
}

// Pass srv.ConnectionString() to the program under test, or as here use the endpoint
// and a client that signs requests.
func ExampleNew() {
	t := new(T)
	defer t.end()
	srv := tabletest.New(t)

	client := srv.Client()
	created, err := client.Post(srv.Endpoint+"/Tables", "application/json", strings.NewReader(`{"TableName":"Orders"}`))
	if err != nil {
		panic(err)
	}
	defer created.Body.Close()
	fmt.Println(created.Status)

	answer, err := client.Get(srv.Endpoint + "/Tables?$format=application/json%3Bodata%3Dnometadata")
	if err != nil {
		panic(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\n", text)

	// Output:
	// 201 Created
	// {"value":[{"TableName":"Orders"}]}
}

// The first insert fails after it was executed: the client cannot know whether it was.
func ExampleWithFaults() {
	t := new(T)
	defer t.end()
	srv := tabletest.New(t, tabletest.WithFaults(1,
		faults.Rule{Operation: "CreateTable", Answer: faults.CutAfter, Probability: 1, Times: 1}))

	client := srv.Client()
	for range 2 {
		created, err := client.Post(srv.Endpoint+"/Tables", "application/json", strings.NewReader(`{"TableName":"Orders"}`))
		if err != nil {
			fmt.Println("the connection was cut")
			continue
		}
		defer created.Body.Close()
		fmt.Println(created.Status)
	}

	// Output:
	// the connection was cut
	// 409 Conflict
}
