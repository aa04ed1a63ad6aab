"""What the help says, a table of short texts: first steps, scripts, prompts, keys, words, and why something fails. Knows no model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from app.base.sentence import Sentence, Value, say, say_to_all

Line = Sentence | tuple[Value, Sentence]
"""A paragraph is a Sentence; a word with what it means, or a key with what it does, is a tuple. Guests read what `say_to_all` marks."""


@dataclass(frozen=True, slots=True)
class Topic:
    id: str
    """By this name scripts lead here."""
    title: Sentence
    lines: tuple[Line, ...] = ()


VOICES: Final = Topic("voices", say("help.voices", "What each voice here can do"))
PAINTERS: Final = Topic("painters", say("help.painters", "What each painter here wants"))
"""The lines of this topic and of the voices' come from the models that are here."""

TOPICS: Final = (
    Topic("first", say_to_all("help.first", "First steps"), (
        say_to_all("help.first.write",
            "On Speak, write what is to be said; on Paint, what is to be seen. Then press the button below it, or Ctrl Enter."),
        say("help.first.starters",
            "The two small starter models work at once. Larger ones sound and look far better: the Models tab says which fit this machine, what they "
            "take to download, and under which licence."),
        say_to_all("help.first.kept",
            "All that is made lies on the Shelf with its settings. “Reuse settings” puts them back into the fields, and so does a picture that is dropped on "
            "the window."),
        say_to_all("help.first.queue", "Who presses again while something is made puts it into the queue. What is finished is kept, whatever happens."),
        say("help.first.private", "Nothing leaves this computer, but for what you share yourself."),
    )),
    Topic("script", say_to_all("help.script", "How to write a script"), (
        say_to_all("help.script.tags",
            "Begin what each speaker says with a tag: [S1] Hello. [S2] Hi there. Without a tag [S1] speaks. Names are tags too: [Anna] Hello."),
        say_to_all("help.script.sentences",
            "Write whole sentences with full stops. The script is cut between sentences into parts; each can be heard as soon as it is ready, changed, "
            "and spoken again alone."),
        say_to_all("help.script.pause",
            "(pause 0.5s) is a silence of half a second. Empty lines and headings are short pauses by themselves."),
        say_to_all("help.script.figures",
            "Numbers, dates, times and abbreviations are read out as words, by the voices that know their language."),
        say("help.script.names", "A name that is read wrongly: write it once under Pronunciations as it sounds, and it is said so from then on."),
        say_to_all("help.script.underlined", "What the voice cannot read is underlined; the caret in it, or a click, offers what it can."),
        say("help.script.books", "Drop a book, a Word file or a PDF on the window: its chapters can be ticked and are spoken one after the other."),
    )),
    VOICES,
    Topic("prompt", say_to_all("help.prompt", "How to write a prompt"), (
        say_to_all("help.prompt.order",
            "Say first what is in the picture and what it does, then where, then the light and the style: “a red boat on a quiet lake, at sunset, oil "
            "painting”."),
        say_to_all("help.prompt.seed",
            "The same seed with the same settings paints the same picture. Keep it and change one word, and you see what that word does."),
        say_to_all("help.prompt.negative",
            "What is not to be seen goes into the negative prompt, without “no”. Models without guidance do not read it."),
        say_to_all("help.prompt.alternatives", "{example} paints a picture of each.", example="{red|blue}"),
        say("help.prompt.wildcards", "__animals__ takes a line of your file animals.txt in Hearth's folder wildcards, another one for each picture."),
        say_to_all("help.prompt.weights", "(word:1.3) counts a word more, (word:0.7) less, with models that take weights."),
        say("help.prompt.start", "To change a picture, start from it: the higher “How much to change”, the less of it stays. A mask keeps the rest untouched."),
        say("help.prompt.pick",
            "“Pick by a click” below it makes a mask of a thing that you click on. SlimSAM, which finds it, is downloaded once, if you want."),
        say("help.prompt.picture",
            "“Words from a picture” says in English what a picture shows, for you to add. Florence-2, which sees it, is downloaded once, if you want."),
    )),
    PAINTERS,
    Topic("keys", say_to_all("help.keys", "Keys"), (
        ("?", say_to_all("help.keys.help", "opens this list, where nothing is being typed")),
        ("Ctrl Enter", say_to_all("help.keys.go", "starts what the open tab makes")),
        ("Esc", say_to_all("help.keys.esc", "stops it; closes a list or a dialog first")),
        ("Tab, Shift Tab", say_to_all("help.keys.tab", "go to the next and the last field or button")),
        ("← →, Home, End", say_to_all("help.keys.tabs", "on a tab: open the others; in a picture seen in full: the picture before and after")),
        ("Ctrl ↑, Ctrl ↓", say_to_all("help.keys.prompts", "in the prompt: earlier prompts")),
        ("Alt ↑, Alt ↓", say_to_all("help.keys.move", "in a part of a script: move it up and down")),
        ("+, −, 0, F", say_to_all("help.keys.zoom", "in a picture seen in full: larger, smaller, as it fits, full screen")),
        ("Ctrl Z, Ctrl Shift Z", say_to_all("help.keys.undo", "undo and redo, also while a mask is drawn and among parts")),
        ("↑ ↓ ← →, Space", say_to_all("help.keys.brush", "on a starting picture: move the brush and paint; Shift goes further, [ and ] change its size")),
        ("P, Enter", say("help.keys.pick", "on a starting picture: pick the thing that the cross lies on; Alt Enter takes it away")),
    )),
    Topic("words", say_to_all("help.words", "What the words mean"), (
        (say_to_all("help.words.part", "Part"), say_to_all("help.words.part-is", "what is spoken at once: a few sentences of a script")),
        (say_to_all("help.words.cast", "Cast"), say_to_all("help.words.cast-is", "which voice each speaker has, how loud and how fast it is")),
        (say_to_all("help.words.seed", "Seed"), say_to_all("help.words.seed-is", "the number that chance begins with; the same one gives the same result")),
        (say_to_all("help.words.steps", "Steps"), say_to_all("help.words.steps-is", "how often a picture is gone over; more take longer and soon add little")),
        (say_to_all("help.words.guidance", "Guidance"),
         say_to_all("help.words.guidance-is", "how closely the text is followed; too much makes it harsh")),
        (say_to_all("help.words.strength", "How much to change"),
         say_to_all("help.words.strength-is", "how far the result may leave the starting picture")),
        (say_to_all("help.words.mask", "Mask"), say_to_all("help.words.mask-is", "the painted-over part of a starting picture: only this is painted anew")),
        (say_to_all("help.words.scheduler", "Scheduler"),
         say_to_all("help.words.scheduler-is", "the rule by which steps take noise away; leave it to the model if in doubt")),
        (say_to_all("help.words.quicker", "Quicker"), say_to_all("help.words.quicker-is", "steps reuse earlier ones: less time, slightly other pictures")),
        (say("help.words.lora", "LoRA"), say("help.words.lora-is", "a small file that teaches a painter a style or a thing; it fits one family of models")),
        (say("help.words.control", "ControlNet, IP-Adapter"),
         say("help.words.control-is", "let a picture lead another: by its outlines, or by how it looks")),
        (say("help.words.chunk", "Chunk size"),
         say("help.words.chunk-is", "how much attention computes at once: smaller needs less memory, larger is faster up to a point")),
        (say("help.words.offload", "Offload"),
         say("help.words.offload-is", "what a model does not need just now waits outside of the card's memory; slower, but it fits")),
        (say("help.words.quantised", "Quantised"), say("help.words.quantised-is", "weights written shorter: much less memory, a little less exact")),
        (say("help.words.precision", "Precision"),
         say("help.words.precision-is", "how long the numbers are that are computed with; Hearth takes what works here")),
        (say("help.words.licence", "Licence"), say("help.words.licence-is", "what a model's makers allow; it is shown before a download")),
    )),
    Topic("memory", say("help.memory", "When memory is not enough"), (
        say("help.memory.why",
            "A model, its text and what it is just computing have to fit into memory together. Larger pictures need more with every pixel, longer parts with "
            "every second."),
        say("help.memory.do",
            "“Retry smaller” asks for less. “Free memory” sends away what is loaded. Closing other programs, browsers above all, helps most where the "
            "card has no memory of its own."),
        say("help.memory.other", "If it stays too large, choose a model that the Models tab marks as one that fits."),
    )),
    Topic("disk", say("help.disk", "When the disk is full, or files are gone"), (
        say("help.disk.waits", "Jobs wait while the disk is full and go on as soon as there is room; nothing has to be pressed."),
        say("help.disk.room",
            "Models take most: the Models tab says how much each, and deletes it. The Shelf's bin gives its room back when it is emptied."),
        say("help.disk.other",
            "“The disk” on the Machine tab shows what is large, double or long unused, and moves models and the shelf to another disk. While that one is "
            "not connected, Hearth says so; nothing is forgotten, and all is there again once it is back."),
        say("help.disk.moved", "A creation that was moved or renamed by hand is found again, if it is still in Hearth's folder of creations."),
    )),
    Topic("models", say("help.models", "Models and downloads"), (
        say("help.models.fit",
            "“Fits” means that it runs in the memory which is free now; “tight” that other programs should be closed. Each forecast says its reason."),
        say("help.models.line", "A download that breaks off waits for the connection and goes on where it was, also after a restart."),
        say("help.models.gate",
            "Some makers want their terms to be accepted on Hugging Face first. Then make an access token there and paste it on the Models tab."),
        say("help.models.own", "Models of ComfyUI, A1111, Forge and others are used from where they are; nothing is copied."),
    )),
    Topic("crash", say("help.crash", "When a job breaks off"), (
        say("help.crash.engine",
            "Models run in a process of their own. If it dies, Hearth starts it again on a safer plan, and the job goes on from its last finished part."),
        say("help.crash.thrice",
            "After three deaths without progress the job ends with what is finished; “Resume” does the rest. Often another program has taken the memory, or a "
            "driver is old."),
        say("help.crash.report", "“Copy report” puts what a bug report needs on the clipboard: facts of the machine, no names, paths or texts of yours."),
    )),
    Topic("by-hand", say("help.by-hand", "Choices by hand"), (
        say("help.by-hand.auto",
            "Precision, offload and chunk size are chosen by facts of this machine, and the Machine tab gives each reason. A choice by hand goes before, if it "
            "can work at all."),
        say("help.by-hand.back", "“Automatic” takes a choice back. What failed runs taught can be forgotten under the plan."),
    )),
    Topic("sharing", say("help.sharing", "Guests"), (
        say("help.sharing.what",
            "Guests speak and paint on this machine through a link and a password. They see only what they made themselves; your jobs go first."),
        say("help.sharing.limits", "You choose how long the link lives and how much guests may ask for, and can send each of them away."),
    )),
    Topic("notify", say_to_all("help.notify", "When it is done: a chime, a notification, your phone"), (
        say_to_all("help.notify.chime",
            "♪ at the top chimes when a job is done. While you look at something else, a notification says so, where the browser or the system allows it."),
        say("help.notify.closed", "Where ♪ is on and no page of Hearth is open, as with its window closed, the system's notification says so."),
        say("help.notify.phone",
            "After work of more than a minute Hearth can write to your phone: on the Machine tab, enter the address of a topic of ntfy, whose free app shows "
            "it, or of a webhook. “Send a test” tries it."),
        say("help.notify.private",
            "Nothing is sent before an address is set, and no words of yours unless you tick that. Whoever knows the name of a topic of ntfy can read it, so "
            "choose a long one."),
    )),
    Topic("pause", say("help.pause", "Pausing, hours, and the battery"), (
        say("help.pause.now",
            "“Pause”, at the top while jobs run or wait, gives the card and its memory back. The job goes on from its last step, also after a restart."),
        say("help.pause.when",
            "There you also say when jobs run: not before a time, only at certain hours, or only while nobody uses this computer. “Resume now” lets the queue "
            "run all the same."),
        say("help.pause.battery",
            "A laptop that runs on its battery asks whether jobs wait until it is plugged in. “When jobs run…” takes that answer back."),
    )),
    Topic("updates", say("help.updates", "Updates, going back, and extras"), (
        say("help.updates.look",
            "“Updates and extras” on the Machine tab looks for a newer version once a day, if you allow it. Nothing is installed unless you press “Update”. "
            "Where pip or git brought Hearth, they update it, and the card says how."),
        say("help.updates.beside",
            "A newer version, or an extra such as books in PDF, is made and tested beside the Hearth that runs. A restart takes it; if anything fails, nothing "
            "changes."),
        say("help.updates.back",
            "“Back to the version before…”, on that card and on the page of a start that failed, undoes the last update. Where git brought Hearth, close it "
            "and run {hearth} back in its folder. What you made and set stays."),
    )),
    Topic("assistants", say("help.assistants", "Assistants"), (
        say("help.assistants.on",
            "Assistants that know MCP, such as Claude, speak and paint here when you ask them to. Switch that on under “Extras” on the Machine tab; a restart "
            "takes it, and the card shows the address then."),
        say("help.assistants.address", "An assistant that takes the address of an MCP server needs no more. Its transport is streamable HTTP."),
        say("help.assistants.program",
            "One that starts a program instead, as Claude Desktop does, is given the command {command} with the address behind it; Node.js has to be installed "
            "for that.", command="npx -y mcp-remote"),
        say("help.assistants.private",
            "Only programs on this computer get in, and not while Hearth is open to the network. What an assistant hears and sees of results goes to its "
            "makers, if it computes there."),
    )),
    Topic("machines", say("help.machines", "Several machines"), (
        say("help.machines.how",
            "Computers that you trust share the work: switch on “Use other computers” on the Machine tab, and “Add a computer” shows a code. Enter it on the "
            "other one, under “Help another computer”."),
        say("help.machines.code",
            "A code works once. If the other computer is not reached: both have to be in one network, and a firewall has to let Hearth in."),
        say("help.machines.models",
            "A helper gets work for the models that it has too; it fetches others if you let it. If a helper is lost, another computer does its work."),
    )),
    Topic("phone", say_to_all("help.phone", "Hearth on a phone"), (
        say("help.phone.share",
            "“Share” at the top makes a link for it: at home over Wi-Fi, or anywhere. A phone that scans the code beside it needs no password."),
        say_to_all("help.phone.install",
            "The browser's menu (“Add to Home Screen” or “Install”) puts Hearth among the phone's apps. It works there for as long as its link does."),
        say_to_all("help.phone.microphone",
            "Browsers give the microphone only to encrypted pages, whose address begins with https; sending results on by the phone's own sheet needs that "
            "too. Elsewhere record with another app and choose that file, and download what you want to send."),
        say("help.phone.https",
            "The link for anywhere is encrypted. The one at home is, if Hearth was opened with a certificate: {hearth} open --certificate FILE --key FILE"),
    )),
    Topic("away", say_to_all("help.gone", "When Hearth does not answer"), (
        say_to_all("help.gone.owner", "The page reconnects by itself once Hearth is there again. What was typed is kept."),
        say("help.gone.start", "If Hearth was closed, start it again as the first time. A running job is offered to be resumed."),
    )),
)  # fmt: skip
