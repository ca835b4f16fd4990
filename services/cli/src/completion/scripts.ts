import type { SHELL_WORDS } from "../choices.ts";

/** A shell with completion support. */
export type CompletedShell = (typeof SHELL_WORDS)[number];

// Each script calls `rollcall __complete WORD...`, with the word under the cursor last. The output has one candidate
// per line, then a tab and a description. Without candidates the shell completes file names.

const BASH = `# bash completion for rollcall
_rollcall() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    COMPREPLY+=("\${line%%$'\\t'*}")
  done < <("\${COMP_WORDS[0]}" __complete "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o bashdefault -o default -F _rollcall rollcall
`;

const ZSH = `#compdef rollcall
# zsh completion for rollcall
_rollcall() {
  local -a lines
  lines=("\${(@f)$("\${words[1]}" __complete "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  lines=("\${(@)lines%%$'\\t'*}")
  lines=("\${(@)lines:#}")
  if (( \${#lines} )); then compadd -Q -- "\${lines[@]}"; else _files; fi
}
if [ "\${funcstack[1]}" = "_rollcall" ]; then _rollcall "$@"; else compdef _rollcall rollcall; fi
`;

const FISH = `# fish completion for rollcall
function __rollcall_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l found ($words[1] __complete $words[2..-1] "$current" 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\\n' $found
    else
        __fish_complete_path "$current"
    end
end
complete -c rollcall -f -a '(__rollcall_complete)'
`;

export function completionScript(shell: CompletedShell): string {
  return { bash: BASH, zsh: ZSH, fish: FISH }[shell];
}
