//go:build unix

package agent

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// What `pid` and `exit` may hold.
const mostNumberBytes = 32

// openRegular opens a file of an execution's folder. The folder is the execution's user's: a link could lead anywhere, and a pipe could keep
// the agent waiting.
func openRegular(path string) (*os.File, fs.FileInfo, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	found, err := file.Stat()
	if err == nil && !found.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, found, nil
}

// readNumber reads what a shim wrote.
func readNumber(path string) (int, error) {
	file, _, err := openRegular(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, mostNumberBytes))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// closeExit says of an execution whose shim was killed with it that it has ended: who reads its output waits for that.
func closeExit(path string) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return // The shim wrote it.
	}
	_, _ = file.WriteString("137\n") // An empty file says the same.
	_ = file.Close()
}
