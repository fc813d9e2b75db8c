/** Webhooks: the commands of their operations, and `enable` and `disable`. */

import { Command } from "commander";
import type { Metadata } from "../../src/accounts/metadata.ts";
import { openPayloadKey } from "../../src/flags/store/payload-key.ts";
import { type SecretCipher, secretCipher } from "../../src/lib/sealed-text.ts";
import type { AddressRules } from "../../src/operate/webhooks/address.ts";
import type { WebhookRecord } from "../../src/operations/webhook-schemas.ts";
import { listAllWebhooks, updateOneWebhook, webhookOperations } from "../../src/operations/webhooks.ts";
import { paths } from "../../src/paths.ts";
import { findByArgument, operationGroup, withCaller } from "../operations/command.ts";
import { LocalStores } from "../operations/local-stores.ts";
import { type CallOptions, withServer } from "../operations/server.ts";
import { projectOption } from "../options.ts";
import { print, printJson, run, withJson } from "../output.ts";
import { getDataDir, getSetting, withSettings } from "../settings.ts";

/** Dependencies of webhook operations. */
class WebhookStores extends LocalStores {
  private cipher: SecretCipher | undefined;

  get secrets(): SecretCipher {
    const { payloadKey } = paths(getDataDir(this.options as Record<string, unknown>));
    this.cipher ??= secretCipher(openPayloadKey(payloadKey, this.metadata));
    return this.cipher;
  }

  get webhookAddresses(): AddressRules {
    return { allowed: getSetting("webhook-allowed-networks", this.options as Record<string, unknown>) };
  }
}

const open = (metadata: Metadata, options: CallOptions) => new WebhookStores(metadata, options);

function switchCommand(name: "enable" | "disable", description: string): Command {
  const command = withJson(withSettings(new Command(name), ["data-dir"]), updateOneWebhook.output!)
    .description(description)
    .argument("<id>", "webhook id")
    .addOption(projectOption);
  withServer(command);
  return command.addHelpText("after", `\nExample:\n  flagkeep webhooks ${name} 1`).action(
    run(async (argument: string, options: CallOptions) => {
      const work = async (caller: Parameters<typeof findByArgument>[3]) => {
        const [id] = updateOneWebhook.cli!.arguments!;
        const found = (await findByArgument(id!, argument, {}, caller)) as number;
        const active = name === "enable";
        const hook = (await caller.call(updateOneWebhook, { id: found, active })) as WebhookRecord;
        if (options.json) printJson(hook);
        else print(`Webhook ${hook.id} is ${active ? "on" : "off"}.`);
      };
      await withCaller(listAllWebhooks, options, work, open);
    }),
  );
}

export const webhooks = operationGroup(
  "webhooks",
  "Manage webhooks, which report flag changes, change requests, spikes, failed backups and weekly summaries.",
  [
    "webhooks create --webhook-url https://hooks.slack.com/services/T0/B0/x",
    "webhooks test 1",
    "webhooks deliveries 1",
  ],
  webhookOperations,
  open,
)
  .addCommand(switchCommand("enable", "Turn a webhook on."))
  .addCommand(switchCommand("disable", "Turn a webhook off; its pending deliveries are canceled."));
