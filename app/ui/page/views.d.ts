// What the server sends, as app/ui/page/view_types has it. Written by `python -m tests.ui.page.test_view_types`.

interface FinishedView {
  kind: "finished";
  elapsed_s: number;
  made: number;
}

interface StoppedView {
  kind: "stopped";
}

interface FailedView {
  kind: "failed";
  text: string;
  cure: string;
  code: string;
}

interface RemarkView {
  kind: string;
  text: string;
}

interface MemoryView {
  now: number;
  highest: number;
  limit: number;
  swap: number;
  process: number;
  device: number | null;
  allocated: number | null;
}

interface StripMemoryView {
  now: number;
  highest: number;
  limit: number;
  swap: number;
  process: number;
  device: number | null;
  allocated: number | null;
  stands_in: boolean;
  total: number;
}

interface StripView {
  job: string;
  model: string;
  doing: string;
  rate: string;
  eta_s: number | null;
  memory: StripMemoryView | null;
  machine: string;
  precision: string;
  attention: string;
  chunk: string;
  plan: string;
  of_guest?: boolean;
  guest_name?: string;
  guest?: boolean;
}

interface BlockerView {
  text: string;
  cure: string;
}

interface ChartPointView {
  now: number;
  highest: number;
  limit: number;
  swap: number;
  process: number;
  device: number | null;
  allocated: number | null;
  rate: number;
  unit: string;
  marks: string[];
}

interface ChunkView {
  size: number | "auto";
  step: number;
  sizes: number[];
}

interface CheckedView {
  done: number;
  total: number;
}

interface NoticeView {
  id: string;
  text: string;
}

interface QueueView {
  id: string;
  text: string;
  kind: "speech" | "picture";
  facts: string;
  place?: number;
}

interface UnknownView {
  begin: number;
  end: number;
  near: string[];
}

interface PlaceView {
  place: number;
  text: string;
}

interface TakeView {
  text: string;
  seconds: number;
  url: string;
  peaks: number[];
}

interface PartView {
  index: number;
  text: string;
  pause: number;
  pace: number;
  state: "done" | "now" | "waits";
  seconds?: number;
  whole?: boolean;
  doubt?: "" | "long" | "short";
  url?: string;
  peaks?: number[];
  marks?: PlaceView[] | null;
  pieces?: string[];
  takes?: TakeView[];
}

interface JobView {
  job: string;
  share: number;
  said: RemarkView[];
  end: FinishedView | StoppedView | FailedView | null;
  doing: string;
}

interface ResultView {
  url: string;
  id: number;
  name: string;
}

interface SoundView {
  url: string;
  id: number;
  name: string;
  peaks: number[];
  seconds: number;
  subtitles: boolean;
  words: boolean;
}

interface ListeningView {
  state: "mending" | "hearing" | "";
  share: number;
  trouble: string;
}

interface BookPlaceView {
  chapter?: number;
  chapters?: number;
  left_s?: number | null;
}

interface PartsView {
  job: string;
  share: number;
  said: RemarkView[];
  end: FinishedView | StoppedView | FailedView | null;
  doing: string;
  parts: PartView[];
}

interface SpeechView {
  job: string;
  share: number;
  said: RemarkView[];
  end: FinishedView | StoppedView | FailedView | null;
  doing: string;
  parts: PartView[];
  before: boolean;
  pace: number;
  cast: string[];
  place: number;
  results: SoundView[];
  listening: ListeningView;
  book: BookPlaceView;
  taken: string;
}

interface MadeView {
  seed?: number | null;
  width?: number;
  height?: number;
}

interface PictureResultView {
  url: string;
  id: number;
  name: string;
  seed?: number | null;
  width?: number;
  height?: number;
  text: string;
}

interface PaintedView {
  index: number;
  url: string;
}

interface CanvasView {
  job: string;
  share: number;
  said: RemarkView[];
  end: FinishedView | StoppedView | FailedView | null;
  doing: string;
  parts: PaintedView[];
  preview: string;
  guide: string;
  rate: string;
}

interface PictureView {
  job: string;
  share: number;
  said: RemarkView[];
  end: FinishedView | StoppedView | FailedView | null;
  doing: string;
  parts: PaintedView[];
  preview: string;
  guide: string;
  rate: string;
  place: number;
  results: PictureResultView[];
  listed: PictureResultView[];
  left: string[];
}

interface CellView {
  result: PictureResultView | null;
  failed: boolean;
  preview: string;
}

interface GridView {
  across: string;
  columns: string[];
  down: string;
  rows: string[];
  cells: CellView[];
  stopped: string[];
  latest: boolean;
}

interface InterruptedView {
  jobs: string[];
  text: string;
  kept: boolean;
}

interface MeasuringView {
  kind: string;
  done: number;
  total: number;
  share: number;
  eta_s: number | null;
  said: RemarkView[];
  end: FinishedView | StoppedView | FailedView | null;
}

interface EnlargingView {
  id: number;
  share: number;
}

interface PauseView {
  reason: string;
  asks: string;
  when: "any" | "away" | "hours";
  begin: string;
  end: string;
  plugged: boolean;
}

interface MainView {
  name: string;
  address: string;
}

interface NearbyView {
  seen: boolean;
  lend: string[];
  mains: MainView[];
}

interface CodeView {
  text: string;
  qr: string;
  left_s: number;
}

interface HelperView {
  id: string;
  name: string;
  online: boolean;
  resting: boolean;
  cluster: string;
  level: "right" | "careful" | "wrong" | "";
  doing: string;
  facts: string[];
  done: number;
  why: string;
}

interface UsingView {
  code: CodeView | null;
  said: string;
  machines: HelperView[];
}

interface LendingView {
  main: string;
  doing: string;
  paused: boolean;
  removed: boolean;
  fetches: boolean;
  lacked: string;
  done: number;
}

interface LackView {
  command: string;
  adds: boolean;
}

interface BothSidesView {
  starting: boolean;
  said: string;
  nearby: NearbyView;
  using: UsingView | null;
  lending: LendingView | null;
}

interface JobsView {
  speech?: SpeechView;
  picture?: PictureView;
}

interface Live {
  speech?: SpeechView;
  picture?: PictureView;
  strip: StripView;
  queue?: QueueView[];
  making?: QueueView | null;
  grid?: GridView;
  standing?: BlockerView | null;
  charts?: ChartPointView[];
  chunk?: ChunkView;
  checked?: CheckedView;
  notices?: NoticeView[];
  interrupted?: InterruptedView | null;
  measuring?: MeasuringView;
  enlarging?: EnlargingView[];
  machines?: LackView | BothSidesView;
  pause?: PauseView;
}

interface TagView {
  begin: number;
  end: number;
  near: string[];
  name: string;
  length: number;
}

interface ProblemView {
  kind: "right" | "careful" | "wrong" | "" | "note";
  text: string;
  cure: string;
  tags?: TagView[];
  captions?: string[];
}

interface TurnView {
  speaker: number;
  name: string;
  text: string;
  said: string;
}

interface ActorView {
  name: string;
  speaker: number;
  voice: string;
}

interface LineView {
  part: number;
  pause: number;
  text?: string;
}

interface DraftView {
  job: string;
  state: "same" | "changed" | "other";
  lines: LineView[];
  fresh: number;
}

interface PromptView {
  problems: ProblemView[];
  marks: UnknownView[];
}

interface ScriptView {
  problems: ProblemView[];
  marks: UnknownView[];
  turns: TurnView[];
  level: "right" | "careful" | "wrong";
  about: string;
  eta_s: number | null;
  nonverbals: string[];
  tags: string[];
  transcript: boolean;
  imitates: boolean;
  settings: string[];
  model: string;
  cast: ActorView[];
  changed: string;
  draft: DraftView | null;
  said: number;
}

interface ChapterView {
  title: string;
  seconds: number;
  letters: number;
  ticked: boolean;
  state: "" | "waits" | "now" | "done" | "cut";
  creation: number;
}

interface NameView {
  name: string;
  count: number;
  voiced: boolean;
}

interface BookView {
  title?: string;
  author?: string;
  note?: string;
  most?: number;
  chapters?: ChapterView[];
  names?: NameView[];
  voiced_most?: number;
  invents?: boolean;
}

interface RevoicedChapterView {
  place: number;
  fresh: number;
  parts: number;
}

interface RevoicedView {
  chapters: RevoicedChapterView[];
  takes_s: number | null;
}

interface HelpLineView {
  term?: string;
  text: string;
}

interface TopicView {
  id: string;
  title: string;
  lines: HelpLineView[];
}

interface TopicsView {
  topics: TopicView[];
}

interface SentenceView {
  begin: number;
  end: number;
  text: string;
  words: [string, number, number][];
}

interface AlongView {
  sentences: SentenceView[];
}

interface VoiceView {
  name: string;
  formerly?: string[];
}

interface VoiceGroupView {
  id: string;
  title: string;
  voices: VoiceView[];
}

interface VoicesView {
  models: VoiceGroupView[];
}

interface ShelfVoiceView {
  name: string;
  kept: boolean;
  words: string[];
  about: string;
  heard: boolean;
}

interface ShelfGroupView {
  id: string;
  title: string;
  voices: ShelfVoiceView[];
}

interface AuditionView {
  id: number;
  name: string;
  of: string;
}

interface ShelfVoicesView {
  models: ShelfGroupView[];
  able: string[];
  seeds: number;
  auditions: AuditionView[];
}

interface PronunciationView {
  word: string;
  spoken: string;
}

interface PronunciationsView {
  rows: PronunciationView[];
  found: number;
  all: number;
}

interface LoraView {
  name: string;
  title: string;
  kind: string;
  word: string;
  places: string;
  family: string;
  misfit: string;
  triggers: string[];
  tags: string[];
  weight: number;
  picture: string;
}

interface LorasView {
  loras: LoraView[];
  more: number;
  unread: number;
  folder: string;
  folders: string[];
}

interface StyleView {
  name: string;
  prompt: string;
  negative: string;
}

interface StylesView {
  styles: StyleView[];
}

interface EnlargerView {
  name: string;
  title: string;
}

interface EnlargersView {
  enlargers: EnlargerView[];
}

interface DescribedView {
  words: string;
}

interface OwnerOnlyView {
  title: string;
  speed: string;
  highest: number;
  maker: string;
  named: string;
  tags: string[];
  albums: number[];
}

interface CreationView {
  seed?: number | null;
  width?: number;
  height?: number;
  title: string;
  speed: string;
  highest: number;
  maker: string;
  named: string;
  tags: string[];
  albums: number[];
  id: number;
  kind: string;
  text: string;
  name: string;
  url: string;
  gone: boolean;
  favourite: boolean;
  binned: boolean;
  seconds: number;
  created_s: number;
  machine: string;
  whole: boolean;
  condition: string;
  subtitles: boolean;
  parts: boolean;
  peaks: number[];
  earlier: number;
}

interface NamedModelView {
  id: string;
  title: string;
}

interface AlbumView {
  id: number;
  name: string;
  count: number;
  kept: boolean;
  ordered: boolean;
}

interface KeptPartsView {
  scripts: number;
  bytes: number;
  most_bytes: number;
}

interface PickedView {
  id: number;
  kind: string;
}

interface FoundView {
  creations: PickedView[];
}

interface ShelfView {
  creations: CreationView[];
  more: boolean;
  count: number;
  at_once: number;
  models: NamedModelView[];
  albums: AlbumView[];
  tags: string[];
  kept?: KeptPartsView;
  before?: string | null;
}

interface FitView {
  level: "right" | "careful" | "wrong" | "";
  word: string;
  sentence: string;
  cures: string[];
}

interface ModelView {
  id: string;
  title: string;
  away: string;
  kind: string;
  facts: string[];
  licence: string;
  starter: boolean;
  local: boolean;
  path: string;
  lacks: boolean;
  here: boolean;
  bytes: number;
  download: number;
  gate: string;
  fit: FitView | null;
}

interface MissingView {
  path: string;
  trouble: string;
}

interface ModelsView {
  models: ModelView[];
  missing: MissingView[];
  token: boolean;
  folder: string;
  free: number;
}

interface OfferView {
  title: string;
  bytes: number;
  because: string;
  licence: string;
  seconds: number;
  measured: boolean;
  trouble: string;
}

interface DownloadView {
  model: string;
  state: "queued" | "running" | "paused" | "failed" | "done";
  word: string;
  done_bytes: number;
  total_bytes: number;
  rate: number;
  eta_s: number | null;
  sentence: string;
  cure: string;
}

interface DownloadsView {
  downloads: DownloadView[];
}

interface ToolView {
  root: string;
  words: string;
  models: number;
}

interface FoundFileView {
  path: string;
  title: string;
  bytes: number;
  facts: string;
  trouble: string;
  usable: boolean;
  here: boolean;
}

interface FoundView {
  allowed: boolean;
  looked: boolean;
  reading: boolean;
  tools: ToolView[];
  files: FoundFileView[];
  left: number;
  more: number;
}

interface OfferedModelView {
  id: string;
  title: string;
  away: string;
  kind: string;
  facts: string[];
  licence: string;
  starter: boolean;
  local: boolean;
  path: string;
  lacks: boolean;
  here: boolean;
  bytes: number;
  download: number;
  gate: string;
  fit: FitView | null;
  seconds: number;
  pace: string;
  speaks: string;
}

interface GreetingView {
  greeted: boolean;
  machine: string;
  models: OfferedModelView[];
  offered: string[];
}

interface ObjectionView {
  text: string;
  source: string;
  link: string;
}

interface RejectedView {
  option: string;
  objections: ObjectionView[];
}

interface ChoiceView {
  field: string;
  what: string;
  choice: string;
  because: string;
  source: string;
  link: string;
  rejected: RejectedView[];
  first: boolean;
}

interface PlanView {
  rows: ChoiceView[];
  warnings: string[];
  retired: string[];
}

interface CurvePointView {
  chunk: number;
  bytes: number;
  seconds: number | null;
}

interface CurveView {
  points: CurvePointView[];
  chunk: number | null;
  at: number | null;
  runs: string;
  knee: number | null;
  budget: number | null;
  note: string;
}

interface VerdictView {
  subject: string;
  passed: boolean;
  error: number | null;
  ms: number;
  words: string;
}

interface SelfTestView {
  parts: VerdictView[];
  paths: VerdictView[];
  rows: VerdictView[];
  right: number;
  total: number;
}

interface MachineView {
  words: string;
  pretended: string;
  facts: string[];
  selftest: SelfTestView;
  other: string;
  simulated: string;
  trouble?: string;
  plan?: PlanView;
  note?: string;
  learned?: string[];
  curve?: CurveView;
}

interface PhoneView {
  address: string;
  kind: string;
  titles: boolean;
}

interface NewerView {
  version: string;
  notes: string;
  bytes: number;
}

interface ExtraView {
  name: string;
  title: string;
  why: string;
  bytes: number;
  licence: string;
  here: boolean;
  command: string;
}

interface AssistantsView {
  wanted: boolean;
  address: string;
  fixed: string;
}

interface UpkeepView {
  version: string;
  fixed: string;
  looks: boolean | null;
  place: string;
  looking: boolean;
  told: string;
  newer: NewerView | null;
  work: string[];
  failed: string;
  ready: string;
  environment: number;
  undo: boolean;
  back: boolean;
  extras: ExtraView[];
  assistants: AssistantsView;
}

interface UseView {
  name: string;
  title: string;
  why: string;
  bytes: number;
  used_s: number | null;
  unused: boolean;
  target: string;
  away: string;
  movable: boolean;
  deletes: boolean;
}

interface DoubleView {
  kept: string;
  paths: string[];
  bytes: number;
  ours: boolean;
}

interface MovingView {
  title: string;
  done: number;
  total: number;
}

interface DiskView {
  known: boolean;
  looking: boolean;
  comparing: boolean;
  folder: string;
  free: number;
  uses: UseView[];
  doubles: DoubleView[];
  places: string[];
  moving: MovingView | null;
  told: string;
  failed: boolean;
}

interface GuestView {
  id: string;
  name: string;
  since_s: number;
  seen_s: number;
}

interface ShareView {
  open: boolean;
  limits: Record<string, number>;
  hours?: number[];
  ways?: ("home" | "link")[];
  address?: string;
  qr?: string;
  left_s?: number;
  lost?: string;
  at_home?: boolean;
  advice?: string;
  guests?: GuestView[];
  password?: string;
}

interface WindowView {
  text: string;
}

interface Answers {
  "hearth/words": Record<string, string>;
  "hearth/help": TopicsView;
  "hearth/live": Live;
  "hearth/drafts": Record<string, string | string[]>;
  "hearth/along/{id}": AlongView;
  "hearth/notify": PhoneView;
  "hearth/cast": VoicesView;
  "hearth/voices": ShelfVoicesView;
  "hearth/says": PronunciationsView;
  "hearth/book": BookView;
  "hearth/window": WindowView;
  "hearth/greeting": GreetingView;
  "hearth/shelf": ShelfView;
  "hearth/enlarge": EnlargersView;
  "hearth/models": ModelsView;
  "hearth/loras": LorasView;
  "hearth/styles": StylesView;
  "hearth/downloads": DownloadsView;
  "hearth/offer": OfferView;
  "hearth/found": FoundView;
  "hearth/machine": MachineView | null;
  "hearth/upkeep": UpkeepView;
  "hearth/disk": DiskView;
  "hearth/share": ShareView;
}
