//go:build unix

package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	nodev1 "rollcall.dev/go/gen/rollcall/node/v1"
	workv1 "rollcall.dev/go/gen/rollcall/work/v1"
)

// shim is the shell script that runs an execution, even while no agent is running. Only one shim can create the file
// `pid`, so an execution starts only once even if two shims start. The file `exit` contains the exit code as a shell
// reports it. The shim traps signals instead of ignoring them, because the program would inherit ignored signals.
const shim = `set -C; echo $$ >"$0/pid" || exit 125; trap : TERM INT HUP QUIT USR1 USR2
"$@" >>"$0/1" 2>>"$0/2" </dev/null; code=$?; echo $code >"$0/exit.new"; mv "$0/exit.new" "$0/exit"`

const (
	defaultGrace    = 5 * time.Second
	watchEvery      = 200 * time.Millisecond
	environmentMark = "ROLLCALL_EXECUTION="
)

// ProcessExecutorOptions configure a ProcessExecutor.
type ProcessExecutorOptions struct {
	// Directory holds one folder for each execution, with its output and its exit code. The user that executions run as
	// must be able to traverse the path to this directory.
	Directory string
	// User is the name of the user that executions run as. If empty, executions run as the agent's own user, which
	// MayBeOwnUser must allow.
	User string
	// MayBeOwnUser allows executions to run as the agent's own user. They can then read the node's private key.
	MayBeOwnUser bool
	// Millicores, MemoryBytes and DiskBytes are the offered resources. 0 millicores offers all processors of the machine.
	// 0 bytes offers no memory or disk.
	Millicores             uint32
	MemoryBytes, DiskBytes uint64
}

// ProcessExecutor runs executions as processes of this machine, on Linux. Each runs in its own session, which survives
// a restart of the agent. ProcessExecutor also serves as an example. It limits no resources, keeps all output, and
// refuses unsupported features (containers, checks, users named by jobs, secrets, stop_on_agent_after).
type ProcessExecutor struct {
	options    ProcessExecutorOptions
	credential *syscall.Credential
	mutex      sync.Mutex
	stopped    map[string]chan struct{}
}

// NewProcessExecutor creates an executor. It fails if executions would run as a user that the options do not allow.
func NewProcessExecutor(options ProcessExecutorOptions) (*ProcessExecutor, error) {
	it := &ProcessExecutor{options: options, stopped: map[string]chan struct{}{}}
	if options.User != "" {
		found, err := user.Lookup(options.User)
		if err != nil {
			return nil, err
		}
		uid, uidErr := strconv.ParseUint(found.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(found.Gid, 10, 32)
		if err := errors.Join(uidErr, gidErr); err != nil {
			return nil, err
		}
		it.credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	isOwn := it.credential == nil || int(it.credential.Uid) == os.Geteuid()
	if isOwn && !options.MayBeOwnUser {
		return nil, errors.New("executions would run as the agent's own user, and could read the node's key: name another User, or set MayBeOwnUser")
	}
	return it, os.MkdirAll(options.Directory, 0o711)
}

// Capacity returns the configured capacity.
func (p *ProcessExecutor) Capacity() *nodev1.WorkCapacity {
	millicores := p.options.Millicores
	if millicores == 0 {
		millicores = uint32(runtime.NumCPU()) * 1000
	}
	return &nodev1.WorkCapacity{
		Executors:   []string{"process"},
		Millicores:  &millicores,
		MemoryBytes: &p.options.MemoryBytes,
		DiskBytes:   &p.options.DiskBytes,
		Lacks:       []string{"checks", "secrets", "stop-on-agent-after"},
	}
}

// Start starts the execution as a process in its own session.
func (p *ProcessExecutor) Start(execution Execution, tell func(Progress)) error {
	if err := p.check(execution.Spec); err != nil {
		return err
	}
	home := p.home(execution.ID)
	if err := os.Mkdir(home, 0o700); err != nil {
		return err
	}
	if p.credential != nil {
		if err := os.Chown(home, int(p.credential.Uid), int(p.credential.Gid)); err != nil {
			return err
		}
	}
	env := environment(execution, home)
	words := append([]string{"-c", shim, home}, expand(execution.Spec.GetProcess().GetCommand(), env)...)
	command := exec.Command("/bin/sh", words...)
	command.Dir, command.Env = home, env
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: p.credential}
	if err := command.Start(); err != nil {
		return err
	}
	p.watch(execution, command.Process.Pid, time.Now(), tell, func() bool {
		found, err := syscall.Wait4(command.Process.Pid, nil, syscall.WNOHANG, nil)
		return found == 0 && err == nil
	})
	return nil
}

// Adopt finds the process by its process id and by the execution's id in its environment. If the execution was never
// started, Adopt prevents it from starting later.
func (p *ProcessExecutor) Adopt(execution Execution, tell func(Progress)) bool {
	home := p.home(execution.ID)
	if file, err := os.OpenFile(filepath.Join(home, "pid"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err == nil {
		return errors.Join(file.Close()) != nil // No shim had created the file yet, and none can now.
	}
	pid, err := readNumber(filepath.Join(home, "pid"))
	if err != nil || pid <= 1 {
		return false
	}
	isThere := func() bool {
		found, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		return err == nil && bytes.Contains(found, []byte(environmentMark+execution.ID+"\x00"))
	}
	if _, err := os.Lstat(filepath.Join(home, "exit")); err != nil && !isThere() {
		return false
	}
	age, err := ageOf(pid)
	if err != nil {
		age = 0 // The process has ended.
	}
	p.watch(execution, pid, time.Now().Add(-age), tell, isThere)
	return true
}

// ticksPerSecond is the number of clock ticks per second in /proc. It is 100 on every Linux machine.
const ticksPerSecond = 100

// ageOf returns how long ago a process started. It measures from the machine's boot and not from file times, because
// the wall clock may have changed since.
func ageOf(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The second field is the program's name, which can contain any character. The 22nd is the start time of the process.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return 0, fmt.Errorf("/proc/%d/stat has too few fields", pid)
	}
	ticks, err := strconv.ParseInt(string(fields[19]), 10, 64)
	if err != nil {
		return 0, err
	}
	text, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(text), " ")
	uptime, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0, err
	}
	return max(0, time.Duration(uptime*float64(time.Second))-time.Duration(ticks)*time.Second/ticksPerSecond), nil
}

// watch reports that an execution is running and, later, how it ended.
func (p *ProcessExecutor) watch(execution Execution, pid int, began time.Time, tell func(Progress), isThere func() bool) {
	stop := make(chan struct{}, 1)
	p.mutex.Lock()
	p.stopped[execution.ID] = stop
	p.mutex.Unlock()
	go func() {
		tell(Progress{})
		ticker := time.NewTicker(watchEvery)
		defer ticker.Stop()
		var killAt, endAt time.Time
		if limit := execution.Spec.GetMaxRunTime(); limit != nil {
			endAt = began.Add(limit.AsDuration())
		}
		reason := workv1.EndReason_END_REASON_EXITED
		for isThere() {
			select {
			case <-stop:
				if killAt.IsZero() {
					killAt = p.askToEnd(execution, pid)
				}
			case now := <-ticker.C:
				if !endAt.IsZero() && killAt.IsZero() && now.After(endAt) {
					endAt, reason = time.Time{}, workv1.EndReason_END_REASON_DEADLINE_EXCEEDED
					killAt = p.askToEnd(execution, pid)
				}
				if !killAt.IsZero() && now.After(killAt) {
					_ = syscall.Kill(-pid, syscall.SIGKILL) // It may have ended by now.
				}
			}
		}
		closeExit(filepath.Join(p.home(execution.ID), "exit"))
		tell(p.endOf(execution.ID, reason))
	}()
}

// askToEnd sends the stop signal, and returns when to kill the execution.
func (p *ProcessExecutor) askToEnd(execution Execution, pid int) time.Time {
	policy := execution.Spec.GetProcess().GetStop()
	signal := syscall.SIGTERM
	if number := unix.SignalNum(policy.GetSignal()); number != 0 {
		signal = number
	}
	_ = syscall.Kill(-pid, signal) // It may have ended by now.
	grace := defaultGrace
	if policy.GetGrace() != nil {
		grace = policy.GetGrace().AsDuration()
	}
	return time.Now().Add(grace)
}

func (p *ProcessExecutor) endOf(id string, reason workv1.EndReason) Progress {
	code, err := readNumber(filepath.Join(p.home(id), "exit"))
	switch {
	case err != nil:
		return Progress{HasEnded: true, Reason: reason, Signal: "SIGKILL"}
	case code > 128:
		return Progress{HasEnded: true, Reason: reason, Signal: unix.SignalName(syscall.Signal(code - 128))}
	}
	exitCode := int32(code)
	return Progress{HasEnded: true, Reason: reason, ExitCode: &exitCode}
}

// Stop sends the signal from the spec, and kills the execution after its grace period.
func (p *ProcessExecutor) Stop(execution Execution) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if stop := p.stopped[execution.ID]; stop != nil {
		select {
		case stop <- struct{}{}:
		default:
		}
	}
}

// Forget removes the execution's folder.
func (p *ProcessExecutor) Forget(id string) {
	p.mutex.Lock()
	delete(p.stopped, id)
	p.mutex.Unlock()
	_ = os.RemoveAll(p.home(id)) // Remains only take up space.
}

// ReadOutput reads from the execution's output file.
func (p *ProcessExecutor) ReadOutput(id string, stream OutputStream, from OutputPlace, limit int) (OutputPiece, error) {
	_, endErr := os.Lstat(filepath.Join(p.home(id), "exit"))
	file, found, err := openRegular(filepath.Join(p.home(id), strconv.Itoa(int(stream))))
	if err != nil {
		return OutputPiece{}, err
	}
	defer file.Close()
	size := uint64(found.Size())
	offset := min(from.Offset, size)
	if from.Tail > 0 {
		offset = size - min(from.Tail, size)
	}
	data := make([]byte, min(uint64(limit), size-offset))
	read, err := file.ReadAt(data, int64(offset))
	if err != nil && !errors.Is(err, io.EOF) {
		return OutputPiece{}, err
	}
	return OutputPiece{offset, data[:read], endErr == nil && offset+uint64(read) >= size}, nil
}

func (p *ProcessExecutor) home(id string) string {
	return filepath.Join(p.options.Directory, fileNameOf(id))
}

// check refuses a spec with settings that this executor does not support, instead of ignoring them.
func (p *ProcessExecutor) check(spec *workv1.ExecutionSpec) error {
	process := spec.GetProcess()
	switch {
	case len(process.GetCommand()) == 0:
		return errors.New("this machine runs only processes")
	case spec.GetCheck() != nil, spec.GetStopOnAgentAfter() != nil, len(process.GetSecretEnv()) > 0:
		return errors.New("this machine's executor does not support checks, secrets or stop_on_agent_after")
	case process.GetUser() != "" && process.GetUser() != p.options.User, process.GetDirectory() != "":
		return errors.New("jobs cannot set a user or a directory on this machine")
	}
	return nil
}

func environment(execution Execution, home string) []string {
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + home}
	for name, value := range execution.Spec.GetProcess().GetEnv() {
		env = append(env, name+"="+value)
	}
	for label, port := range execution.Ports {
		env = append(env, fmt.Sprintf("PORT_%s=%d", strings.ToUpper(label), port))
	}
	return append(env, environmentMark+execution.ID, "ROLLCALL_JOB="+execution.Spec.GetJob(), "ROLLCALL_NODE="+execution.NodeID,
		fmt.Sprintf("ROLLCALL_INDEX=%d", execution.Index))
}

var reference = regexp.MustCompile(`\$\$[A-Za-z_{]|\$\{[A-Za-z_][A-Za-z0-9_]*\}|\$[A-Za-z_][A-Za-z0-9_]*`)

// expand replaces $NAME and ${NAME} with values from the environment. It leaves unknown names for a shell to expand.
// `$$` becomes one dollar sign, and the name after it is not replaced.
func expand(command, env []string) []string {
	values := map[string]string{}
	for _, one := range env {
		name, value, _ := strings.Cut(one, "=")
		values[name] = value
	}
	words := make([]string, len(command))
	for index, word := range command {
		words[index] = expandWord(word, values)
	}
	return words
}

func expandWord(word string, values map[string]string) string {
	expanded := ""
	for {
		at := reference.FindStringIndex(word)
		if at == nil {
			return expanded + word
		}
		found := word[at[0]:at[1]]
		expanded += word[:at[0]]
		if strings.HasPrefix(found, "$$") {
			// Scan the rest again. Without its dollar sign, it is not a reference.
			expanded, word = expanded+"$", word[at[0]+2:]
			continue
		}
		if value, isKnown := values[strings.Trim(found, "${}")]; isKnown {
			found = value
		}
		expanded, word = expanded+found, word[at[1]:]
	}
}
