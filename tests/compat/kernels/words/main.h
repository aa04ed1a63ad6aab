// Run the kernels of `entries` on the cases of standard input: five numbers and the bytes they count; the products go to standard output.
struct Case { uint32_t entry, rows, columns, threads, sizes[4]; };

static std::unique_ptr<uint8_t[]> take(uint32_t size) {
    std::unique_ptr<uint8_t[]> bytes(new uint8_t[size]); // no more than they are, so that a sanitizer sees what lies beyond
    if (std::fread(bytes.get(), 1, size, stdin) != size)
        std::exit(2);
    return bytes;
}

int main() {
    Case each;
    while (std::fread(&each, sizeof each, 1, stdin) == 1) {
        auto lines = take(each.sizes[0]), weight = take(each.sizes[1]), scales = take(each.sizes[2]);
        std::unique_ptr<uint8_t[]> made(new uint8_t[each.sizes[3]]);
        std::memset(made.get(), 0xff, each.sizes[3]); // not a number
        for (uint32_t first = 0; first < each.threads; first += LANES_OF_A_GROUP)
            run_group([&](int lane) {
                entries[each.entry](lines.get(), weight.get(), scales.get(), made.get(), each.rows, each.columns, first + lane);
            });
        std::fwrite(made.get(), 1, each.sizes[3], stdout);
    }
}
