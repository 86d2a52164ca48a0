package vfs_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/tablerock-db/tablerock/vfs"
)

// lockChild names the variable that turns the test binary into a process that
// takes a lock, says how that went, and waits for the end of its input.
const lockChild = "VFS_TEST_LOCK"

func TestMain(m *testing.M) {
	if name := os.Getenv(lockChild); name != "" {
		lock, err := vfs.OS().Lock(name)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("locked")
		_, _ = os.Stdin.Read(make([]byte, 1))
		_ = lock.Close()
		return
	}
	goleak.VerifyTestMain(m)
}
