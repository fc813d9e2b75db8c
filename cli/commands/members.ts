import { Command } from "commander";
import { LEVELS, listMembers } from "../../src/metadata/users.ts";
import { printJson, printTable, run } from "../output.ts";
import { withSettings } from "../settings.ts";
import { chosenOrganization, withMetadata } from "../stores.ts";

const levelNames = new Map<number, string>(Object.entries(LEVELS).map(([name, level]) => [level, name]));

export const members = withSettings(new Command("members"), ["data-dir"])
  .description("List the members of the organisation and their levels.")
  .option("--organization <id>", "which organisation; may be left out when there is one")
  .option("--json", "print the members as JSON")
  .addHelpText("after", "\nExample:\n  flagkeep members --json")
  .action(
    run((options: { organization?: string; json?: true }) =>
      withMetadata(options, (metadata) => {
        const { id } = chosenOrganization(metadata, options.organization);
        const found = listMembers(metadata.db, id).map(({ user, level, joinedAt }) => ({
          id: user.id,
          email: user.email,
          level: levelNames.get(level) ?? String(level),
          is_active: user.isActive,
          joined_at: joinedAt.toISOString(),
        }));
        if (options.json) return printJson(found);
        printTable(
          ["id", "email", "level", "state", "joined"],
          found.map((member) => [
            String(member.id),
            member.email,
            member.level,
            member.is_active ? "active" : "inactive",
            member.joined_at.slice(0, 10),
          ]),
        );
      }),
    ),
  );
