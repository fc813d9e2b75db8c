import { type Static, Type } from "@sinclair/typebox";
import { Command } from "commander";
import { listMembers, membershipLevels } from "../../src/accounts/users.ts";
import { exactly, Instant } from "../../src/lib/schema.ts";
import { withJson } from "../json-shape.ts";
import { printJson, printTable, run } from "../output.ts";
import { withSettings } from "../settings.ts";
import { chosenOrganization, withMetadata } from "../stores.ts";

const levelNames = new Map<number, string>(
  Object.entries(membershipLevels).map(([name, level]) => [level, name]),
);

const MemberRecord = exactly({
  id: Type.Integer(),
  email: Type.String(),
  /** `member`, `admin`, `owner`; a number that another system has set is shown as it is. */
  level: Type.String(),
  is_active: Type.Boolean(),
  joined_at: Instant,
});

export const members = withJson(
  withSettings(new Command("members"), ["data-dir"]),
  Type.Array(MemberRecord),
  "print the members as JSON",
)
  .description("List the members of the organization and their levels.")
  .option("--organization <id>", "organization id; optional if there is one")
  .addHelpText("after", "\nExample:\n  flagkeep members --json")
  .action(
    run((options: { organization?: string; json?: true }) =>
      withMetadata(options, (metadata) => {
        const { id } = chosenOrganization(metadata, options.organization);
        const found = listMembers(metadata.db, id).map(
          ({ user, level, joinedAt }): Static<typeof MemberRecord> => ({
            id: user.id,
            email: user.email,
            level: levelNames.get(level) ?? String(level),
            is_active: user.isActive,
            joined_at: joinedAt.toISOString(),
          }),
        );
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
