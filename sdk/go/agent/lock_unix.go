//go:build unix

package agent

import (
	"errors"
	"os"
	"syscall"
)

// isTaken locks a file for this process until it is closed, and reports whether another process has
// locked it.
func isTaken(file *os.File) bool {
	return errors.Is(syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}
