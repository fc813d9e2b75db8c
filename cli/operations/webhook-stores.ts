/** Dependencies of webhook operations, in a separate file: other commands start without this code. */

import { openPayloadKey } from "../../src/flags/store/payload-key.ts";
import { type SecretCipher, secretCipher } from "../../src/lib/sealed-text.ts";
import type { AddressRules } from "../../src/operate/webhooks/address.ts";
import { paths } from "../../src/paths.ts";
import { getDataDir, getSetting } from "../settings.ts";
import { LocalStores } from "./local-stores.ts";

export class WebhookStores extends LocalStores {
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
