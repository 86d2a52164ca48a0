package vfs_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/tablerock-db/tablerock/vfs"
)

// lockChild is the environment variable that makes the test binary lock a file, print the
// result, and wait for the end of its input.
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
