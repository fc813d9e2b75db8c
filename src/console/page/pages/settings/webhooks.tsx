/** Webhooks of the project: list, form, test, deliveries. */

import { useState } from "preact/hooks";
import { ConfirmDialog } from "../../components/confirm.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { Badge, Button, CodeBlock, Switch } from "../../components/primitives.tsx";
import { Empty, ResourceList } from "../../components/states.tsx";
import { toast, toastError } from "../../components/toast.tsx";
import { request } from "../../lib/api.ts";
import { useResource } from "../../lib/resource.ts";
import { inProject, isAdmin, project } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import { type Delivery, WebhookDeliveries } from "./webhook-deliveries.tsx";
import { type Webhook, WebhookForm } from "./webhook-form.tsx";

const w = messages.webhooks;
const path = (rest = "") => inProject(`webhooks/${rest}`);
const getName = (hook: Webhook) => hook.name || hook.url;

/** How long a test waits for its result. */
const testWaitMs = 12_000;
const testPollMs = 250;

type Opened = { kind: "edit" | "deliveries" | "rotate" | "remove"; hook: Webhook } | { kind: "add" };

export function WebhookSettings() {
  const hooks = useResource<{ results: Webhook[] }>(`webhooks of ${project.value?.id}`, (signal) =>
    request(path("?limit=100"), { signal }),
  );
  const [opened, setOpened] = useState<Opened>();
  const [secret, setSecret] = useState<string>();
  const disabledReason = !isAdmin.value && messages.frame.onlyAdmins;
  const close = () => setOpened(undefined);
  const change = (work: Promise<unknown>) => work.then(hooks.reload, toastError);
  const rotate = async (hook: Webhook) => {
    const rotated = await request<{ secret: string }>(path(`${hook.id}/rotate_secret/`), { method: "POST" });
    setSecret(rotated.secret);
  };
  return (
    <section class="card stack">
      <div class="row apart">
        <h2>{w.title}</h2>
        <Button
          kind="main"
          icon="plus"
          disabledReason={disabledReason}
          onClick={() => setOpened({ kind: "add" })}
        >
          {w.add}
        </Button>
      </div>
      <p class="help">{disabledReason || w.help}</p>
      <ResourceList
        resource={hooks}
        rows={2}
        empty={<Empty title={w.empty} icon="live" command="flagkeep webhooks create --webhook-url URL" />}
      >
        {(hook) => (
          <li key={hook.id} class="stack tight">
            <div class="row apart">
              <span class="row">
                <Switch
                  name={`${w.active}: ${getName(hook)}`}
                  isOn={hook.active}
                  disabledReason={disabledReason}
                  onChange={(active) =>
                    void change(request(path(`${hook.id}/`), { method: "PATCH", body: { active } }))
                  }
                />
                <b>{getName(hook)}</b> <Badge>{w.formats[hook.format]}</Badge>
              </span>
              <span class="row">
                <Button
                  label={`${w.test}: ${getName(hook)}`}
                  disabledReason={disabledReason}
                  isDisabled={!hook.active}
                  onClick={() => void sendTest(hook)}
                >
                  {w.test}
                </Button>
                <Button
                  label={`${w.deliveries}: ${getName(hook)}`}
                  onClick={() => setOpened({ kind: "deliveries", hook })}
                >
                  {w.deliveries}
                </Button>
                <Button
                  label={`${w.edit} ${getName(hook)}`}
                  disabledReason={disabledReason}
                  onClick={() => setOpened({ kind: "edit", hook })}
                >
                  {w.edit}
                </Button>
                <Button
                  label={`${w.rotate}: ${getName(hook)}`}
                  disabledReason={disabledReason}
                  onClick={() => setOpened({ kind: "rotate", hook })}
                >
                  {w.rotate}
                </Button>
                <Button
                  kind="quiet"
                  icon="trash"
                  label={`${messages.frame.delete} ${getName(hook)}`}
                  disabledReason={disabledReason}
                  onClick={() => setOpened({ kind: "remove", hook })}
                />
              </span>
            </div>
            <span class="muted">
              {hook.name && `${hook.url} · `}
              {hook.events.map((event) => w.eventNames[event] ?? event).join(", ")}
            </span>
            {hook.skipped_events > 0 && <p class="error">{w.skipped(hook.skipped_events)}</p>}
          </li>
        )}
      </ResourceList>
      {(opened?.kind === "add" || opened?.kind === "edit") && (
        <WebhookForm
          hook={opened.kind === "edit" ? opened.hook : undefined}
          onClose={close}
          onSaved={(saved) => {
            close();
            setSecret(saved.secret);
            hooks.reload();
          }}
        />
      )}
      {opened?.kind === "deliveries" && (
        <WebhookDeliveries id={opened.hook.id} name={getName(opened.hook)} onClose={close} />
      )}
      {opened?.kind === "rotate" && (
        <ConfirmDialog
          title={w.rotate}
          text={w.rotateText}
          action={w.rotate}
          onClose={close}
          onYes={() => void rotate(opened.hook).catch(toastError)}
        />
      )}
      {opened?.kind === "remove" && (
        <ConfirmDialog
          title={w.remove}
          text={w.removeText(getName(opened.hook))}
          action={w.remove}
          onClose={close}
          onYes={() => void change(request(path(`${opened.hook.id}/`), { method: "DELETE" }))}
        />
      )}
      {secret !== undefined && (
        <Dialog title={w.secretTitle} onClose={() => setSecret(undefined)}>
          <p>{w.secretHelp}</p>
          <CodeBlock label={w.secretTitle} code={secret} />
        </Dialog>
      )}
    </section>
  );
}

async function sendTest({ id }: Webhook): Promise<void> {
  try {
    const queued = await request<Delivery>(path(`${id}/test/`), { method: "POST" });
    const end = performance.now() + testWaitMs;
    while (performance.now() < end) {
      await new Promise((resolve) => setTimeout(resolve, testPollMs));
      const delivery = await request<Delivery>(path(`${id}/deliveries/${queued.id}/`));
      if (delivery.state === "delivered") return toast(w.testSent(delivery.status!));
      if (delivery.attempts > 0 || delivery.state === "failed")
        return toastError(w.testFailed(delivery.error ?? ""));
    }
    toast(w.testWaiting);
  } catch (error) {
    toastError(error);
  }
}
