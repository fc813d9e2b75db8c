import { Argument, Command } from "commander";
import { completionScript, type Shell, shells } from "../completions.ts";
import { run } from "../output.ts";
import { withUnusedDataDir } from "../settings.ts";

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
