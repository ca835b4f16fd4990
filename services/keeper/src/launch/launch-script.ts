/** Which user a command becomes. */
export interface Account {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

/** A command as it is run. */
export interface Command {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly directory: string;
}

/**
 * Keeps one execution, and nothing else: it starts the program in a session of its own, holds both pipes of its output
 * open, and writes down how it ended. It outlives the keeper, which may be killed and finds the end here. A shell,
 * since there is one for each execution: it takes 1 MB where Node takes 45.
 *
 * Its arguments: the directory of the execution, then the directories of the cgroups that the program enters, then
 * `--`, then the words that come before `sh`: those that make the program another user's.
 *
 * - `run/started` is made first and only once, so that two keepers never start one execution twice.
 * - Traps that do something are reset in children; those that ignore a signal would be inherited.
 * - `3` and `4` are opened to read and to write, so that the pipes have both ends while no keeper reads.
 * - `6` takes the word that the program is about to begin, or why not. The program never has it.
 * - The program runs in the foreground: one in the background would be born with SIGINT and SIGQUIT ignored.
 * - What it writes down is one write for each file, and a reader waits for the end of the line.
 * - Shells have one number for a signal and a code above 128, but say a few words about a signal.
 * - At the end it waits for a keeper that has taken note, a day at most: what is left in the pipes would be lost with
 *   it.
 */
export const SHIM_SCRIPT = `
set -u
cd "$1" || exit 1
mkdir run/started 2>/dev/null || exit 1
shift
trap : HUP INT TERM QUIT USR1 USR2 ALRM PIPE
mkfifo -m 622 stdout.pipe stderr.pipe seen.pipe || exit 1
exec 3<>stdout.pipe 4<>stderr.pipe 5<>seen.pipe
note() { read -r line </proc/self/stat && echo "$line" >"run/$1"; }
note shim
exec 2>run/words
(
  exec 2>/dev/null
  note child
  while [ "$1" != -- ]; do
    echo 0 >"$1/cgroup.procs" || { echo "cannot enter the cgroup $1" >run/status; exit 125; }
    shift
  done
  shift
  echo 0 >/proc/self/oom_score_adj
  exec setsid "$@" sh -s <program >&3 2>&4 3>&- 4>&- 5>&- 6>run/status
)
code=$?
exec 2>/dev/null
words=
read -r words <run/words
echo "$code $words" >run/exit
timeout 86400 sh -c 'read -r seen' <&5
`;

/** The program that a shell reads as the execution's own user: it sets the environment and becomes the command. */
export function programScript({ argv, env, directory }: Command): string {
  const [program = ""] = argv;
  const exports = Object.entries(env).map(([name, value]) => `export ${name}=${quote(value)}`);
  return [
    'fail() { echo "$1" >&6; exit 127; }',
    `cd ${quote(directory)} 2>/dev/null || fail ${quote(`cannot enter the directory ${directory}`)}`,
    // Set by cd, and nothing that a program expects to find.
    "unset OLDPWD",
    ...exports,
    `command -v ${quote(program)} >/dev/null 2>&1 || fail ${quote(`cannot find a program ${program}`)}`,
    "echo begun >&6",
    "exec 6>&-",
    `exec ${argv.map(quote).join(" ")} </dev/null`,
    "",
  ].join("\n");
}

/**
 * The words that make a command another user's, with no way back: no capability is left, and no program with the setuid
 * bit gives one.
 */
export function becoming(account: Account | null): readonly string[] {
  if (account === null) return [];
  const { uid, gid } = account;
  const ids = [`--reuid=${uid}`, `--regid=${gid}`, "--init-groups"];
  return ["setpriv", ...ids, "--no-new-privs", "--inh-caps=-all"];
}

/** A word that a shell takes as it is. */
export function quote(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}
