/** Shell completion scripts, generated from the command tree so that they always match it. */

import { Argument, Command } from "commander";
import { inSingleQuotes } from "../../src/lib/terminal-text.ts";
import { run } from "../output.ts";
import { withUnusedDataDir } from "../settings.ts";

const shells = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof shells)[number];

/** What may follow at one position of the command line. */
interface CompletionStep {
  /** The commands up to here, for example `keys create`; empty for the program itself. */
  path: string;
  commands: Word[];
  /** Possible values of the first argument, where the set is fixed. */
  words: readonly string[];
  /** Command that lists possible arguments, for example flag keys; empty: none. */
  lister: string;
  options: (Word & { takesValue: boolean; choices: readonly string[] })[];
}

interface Word {
  name: string;
  description: string;
}

function completionScript(program: Command, shell: Shell): string {
  const positions = getLocations(program, "");
  return { bash, zsh, fish }[shell](positions);
}

function getLocations(command: Command, path: string): CompletionStep[] {
  const help = { name: "--help", description: "show help", takesValue: false, choices: [] };
  const own: CompletionStep = {
    path,
    words: command.registeredArguments[0]?.argChoices ?? [],
    lister: getLister(path, command),
    commands: command.commands.map((child) => ({ name: child.name(), description: child.description() })),
    options: [
      ...command.options
        .filter(({ hidden }) => !hidden)
        .map((option) => ({
          name: option.long ?? option.flags,
          description: option.description,
          takesValue: option.required || option.optional,
          choices: option.argChoices ?? [],
        })),
      help,
    ],
  };
  return [
    own,
    ...command.commands.flatMap((child) => getLocations(child, `${path} ${child.name()}`.trimStart())),
  ];
}

/** Flag keys come from the data directory that the command line names. */
function getLister(path: string, command: Command): string {
  if (!path.startsWith("flags ") || path === "flags create") return "";
  if (command.registeredArguments[0]?.name() !== "key") return "";
  return `flags list --keys${path === "flags restore" ? " --deleted" : ""}`;
}

/** `case` lines that walk down the command tree by the words typed so far. */
function steps(completionSteps: readonly CompletionStep[], variable: string): string {
  const known = completionSteps.filter(({ path }) => path !== "").map(({ path }) => `"${path}"`);
  return `      ${known.join("|")}) ${variable}="$next" ;;`;
}

/** `case` lines by position and previous word: the values of an option. */
function values(
  completionSteps: readonly CompletionStep[],
  line: (choices: readonly string[]) => string,
): string {
  return completionSteps
    .flatMap(({ path, options }) =>
      options
        .filter(({ takesValue }) => takesValue)
        .map(({ name, choices }) => `    "${path}|${name}") ${line(choices)} ;;`),
    )
    .join("\n");
}

/** The body of the loop over the words so far, and the choice of the words that may follow; equal in bash and zsh. */
function readWords(completionSteps: readonly CompletionStep[], cases: readonly string[]): string {
  return `    case "$before" in --data-dir|--project) own+=("$before" "$word") ;; esac
    before="$word"
    next="\${at:+$at }$word"
    case "$next" in
${steps(completionSteps, "at")}
    esac
  done
  case "$at" in
${cases.join("\n")}
  esac`;
}

function bash(completionSteps: readonly CompletionStep[]): string {
  const cases = completionSteps.map(({ path, commands, words, lister, options }) => {
    const names = [...words, ...[...commands, ...options].map(({ name }) => name)].join(" ");
    return `    "${path}") known="${names}"; lister="${lister}" ;;`;
  });
  return `# flagkeep completion for bash. Load it with: source <(flagkeep completions bash)
_flagkeep() {
  local current="\${COMP_WORDS[COMP_CWORD]}" at="" next word known="" lister="" before=""
  local -a own=()
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
${readWords(completionSteps, cases)}
  # File names complete everything else.
  case "$at|\${COMP_WORDS[COMP_CWORD-1]}" in
${values(completionSteps, (choices) => `known="${choices.join(" ")}"; lister=""`)}
  esac
  if [[ -n "$lister" && "$current" != -* ]]; then
    known="$known $("\${COMP_WORDS[0]}" $lister "\${own[@]}" 2>/dev/null)"
  fi
  COMPREPLY=($(compgen -W "$known" -- "$current"))
}
complete -o default -F _flagkeep flagkeep
`;
}

function zsh(completionSteps: readonly CompletionStep[]): string {
  const described = (words: readonly Word[]) =>
    words.map(({ name, description }) => inSingleQuotes(`${name}:${description}`)).join(" ");
  const cases = completionSteps.map(
    ({ path, commands, words, lister, options }) =>
      `    "${path}") commands=(${[described(commands), ...words].join(" ").trim()}); options=(${described(options)}); lister="${lister}" ;;`,
  );
  return `#compdef flagkeep
# flagkeep completion for zsh. Load it with: source <(flagkeep completions zsh)
_flagkeep() {
  local at="" next word lister="" before=""
  local -a commands options own
  for word in "\${(@)words[2,CURRENT-1]}"; do
${readWords(completionSteps, cases)}
  case "$at|\${words[CURRENT-1]}" in
${values(completionSteps, (choices) => (choices.length > 0 ? `compadd -- ${choices.join(" ")}; return` : "_files; return"))}
  esac
  if [[ "\${words[CURRENT]}" == -* ]]; then
    _describe -o option options
  elif [[ -n "$lister" ]]; then
    compadd -- \${(f)"$("\${words[1]}" \${=lister} "\${own[@]}" 2>/dev/null)"}
  elif (( \${#commands} )); then
    _describe command commands
  else
    _files
  fi
}
if [[ "\${funcstack[1]}" == _flagkeep ]]; then
  _flagkeep "$@"
else
  compdef _flagkeep flagkeep
fi
`;
}

function fish(completionSteps: readonly CompletionStep[]): string {
  const lines = completionSteps.flatMap(({ path, commands, words, lister, options }) => {
    const here = `complete -c flagkeep -n ${inSingleQuotes(`__flagkeep_at ${inSingleQuotes(path)}`)}`;
    return [
      ...commands.map(({ name, description }) => `${here} -f -a ${name} -d ${inSingleQuotes(description)}`),
      ...words.map((word) => `${here} -f -a ${word}`),
      ...(lister === "" ? [] : [`${here} -f -a ${inSingleQuotes(`(__flagkeep_list ${lister})`)}`]),
      ...options.map(({ name, description, takesValue, choices }) => {
        const values =
          choices.length > 0 ? ` -x -a ${inSingleQuotes(choices.join(" "))}` : takesValue ? " -r" : "";
        return `${here} -l ${name.replace(/^-+/, "")}${values} -d ${inSingleQuotes(description)}`;
      }),
    ];
  });
  return `# flagkeep completion for fish. Load it with: flagkeep completions fish | source
function __flagkeep_list
  set -l own
  set -l before ""
  set -l words (commandline -opc)
  for word in $words
    contains -- "$before" --data-dir --project; and set -a own $before $word
    set before "$word"
  end
  command $words[1] $argv $own 2>/dev/null
end
function __flagkeep_at
  set -l at ""
  for word in (commandline -opc)[2..]
    set -l next (string trim "$at $word")
    switch "$next"
      case ${completionSteps
        .filter(({ path }) => path !== "")
        .map(({ path }) => inSingleQuotes(path))
        .join(" ")}
        set at "$next"
    end
  end
  test "$at" = "$argv[1]"
end
${lines.join("\n")}
`;
}

export const completions = withUnusedDataDir(new Command("completions"))
  .description("Print a shell completion script.")
  .addArgument(new Argument("<shell>", "shell").choices(shells))
  .addHelpText(
    "after",
    "\nExamples:\n  source <(flagkeep completions bash)\n" +
      "  flagkeep completions zsh > ~/.zfunc/_flagkeep\n" +
      "  flagkeep completions fish > ~/.config/fish/completions/flagkeep.fish",
  )
  .action(
    run((shell: Shell, _options: object, command: Command) => {
      process.stdout.write(completionScript(command.parent!, shell));
    }),
  );
