/** The form of a webhook. */

import { useState } from "preact/hooks";
import { Area, Checkbox, Field, Select } from "../../components/fields.tsx";
import { FormDialog } from "../../components/form.tsx";
import { ApiError, request } from "../../lib/api.ts";
import type { Webhook as ListedWebhook, WebhookWithSecret } from "../../lib/api-types.ts";
import { useForm } from "../../lib/form.ts";
import { inProject } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";

const w = messages.webhooks;

/** The secret is only in the response to creating it. */
export type Webhook = ListedWebhook & Partial<WebhookWithSecret>;

const eventNames = Object.keys(w.eventNames).filter((name) => name !== "test");
const firstEvents = ["flag_changed", "change_request_opened", "change_request_decided", "spike"];
const firstTemplate = '{"text": "{{text}} {{url}}"}';

export function WebhookForm({
  hook,
  onClose,
  onSaved,
}: {
  /** Undefined: a new one. */
  hook: Webhook | undefined;
  onClose: () => void;
  onSaved: (saved: Webhook) => void;
}) {
  const [url, setUrl] = useState(hook?.url ?? "");
  const [name, setName] = useState(hook?.name ?? "");
  const [format, setFormat] = useState(hook?.format ?? "auto");
  const [template, setTemplate] = useState(
    hook?.template ? JSON.stringify(hook.template, null, 2) : firstTemplate,
  );
  const [events, setEvents] = useState<readonly string[]>(hook?.events ?? firstEvents);
  const form = useForm({}, async () => {
    const body = {
      url: url.trim(),
      name,
      events,
      ...(format === "auto" ? {} : { format }),
      ...(format === "custom" ? { template: parsed(template) } : {}),
    };
    const saved =
      hook === undefined
        ? await request<Webhook>(inProject("webhooks/"), { method: "POST", body })
        : await request<Webhook>(inProject(`webhooks/${hook.id}/`), { method: "PATCH", body });
    onSaved(saved);
  });
  const formats = Object.entries(w.formats).filter(([one]) => hook === undefined || one !== "auto");
  return (
    <FormDialog
      title={hook === undefined ? w.add : w.editTitle(hook.name || hook.url)}
      form={form}
      action={hook === undefined ? w.create : messages.settings.save}
      onCancel={onClose}
      onClose={onClose}
    >
      <Field
        label={w.url}
        value={url}
        onInput={setUrl}
        help={w.urlHelp}
        error={form.errorOf("url")}
        placeholder="https://"
        isRequired
        autofocus
      />
      <Field label={w.name} value={name} onInput={setName} error={form.errorOf("name")} />
      <Select label={w.format} value={format} choices={formats} onChange={setFormat} />
      {format === "custom" && (
        <Area label={w.template} value={template} onInput={setTemplate} error={form.errorOf("template")} />
      )}
      <fieldset class="stack tight">
        <legend class="label">{w.events}</legend>
        {eventNames.map((event) => (
          <Checkbox
            key={event}
            label={w.eventNames[event]!}
            isOn={events.includes(event)}
            onChange={(isOn) =>
              setEvents(isOn ? [...events, event] : events.filter((value) => value !== event))
            }
          />
        ))}
      </fieldset>
    </FormDialog>
  );
}

/** @throws {ApiError} like the server's. */
function parsed(template: string): unknown {
  try {
    return JSON.parse(template);
  } catch {
    throw new ApiError(400, "invalid_input", w.templateWrong, "template");
  }
}
