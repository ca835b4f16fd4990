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

// The maximum size of the files `pid` and `exit`, in bytes.
const mostNumberBytes = 32

// openRegular opens a file in an execution's folder, and fails if it is not a regular file. The execution's user owns
// the folder, so a link could lead anywhere and a pipe could block the agent.
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

// readNumber reads a number written by a shim.
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

// closeExit marks an execution as ended, in case its shim was killed along with it. Readers of the output wait for
// this mark.
func closeExit(path string) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return // The shim has written the file.
	}
	_, _ = file.WriteString("137\n") // An empty file means the same.
	_ = file.Close()
}
