// Reports of iperf3 3.12 between two of its kind on one machine, without what nobody reads.
#pragma once

namespace adit::bench {

/// Two streams, one second.
inline constexpr const char* kTcpSend = R"(
{"start": {"version": "iperf 3.12", "test_start": {"protocol": "TCP", "num_streams": 2,
"blksize": 131072, "omit": 0, "duration": 1, "bytes": 0, "blocks": 0, "reverse": 0, "tos": 0,
"target_bitrate": 0}}, "intervals": [{"streams": [], "sum": {"start": 0, "end": 0.200278,
"seconds": 0.20027799904346466, "bytes": 411303936, "bits_per_second": 16429320762.715954,
"retransmits": 2, "omitted": false, "sender": true}}, {"streams": [], "sum": {"start": 0.200278,
"end": 0.400175, "seconds": 0.19989700615406036, "bytes": 450887680,
"bits_per_second": 18044799716.61012, "retransmits": 1, "omitted": false, "sender": true}}],
"end": {"streams": [{"sender": {"socket": 5, "start": 0, "end": 1.000293, "seconds": 1.000293,
"bytes": 1112670208, "bits_per_second": 8898754328.98161, "retransmits": 4,
"max_snd_cwnd": 1047728, "max_snd_wnd": 1428480, "max_rtt": 166, "min_rtt": 48, "mean_rtt": 109,
"sender": true}, "receiver": {"socket": 5, "start": 0, "end": 1.015947, "seconds": 1.000293,
"bytes": 1111359488, "bits_per_second": 8751318625.8732, "sender": true}},
{"sender": {"socket": 7, "start": 0, "end": 1.000293, "seconds": 1.000293, "bytes": 1028784128,
"bits_per_second": 8227862260.357715, "retransmits": 1, "max_snd_cwnd": 4583810,
"max_snd_wnd": 23575552, "max_rtt": 2026, "min_rtt": 130, "mean_rtt": 851, "sender": true},
"receiver": {"socket": 7, "start": 0, "end": 1.015947, "seconds": 1.000293, "bytes": 1027473408,
"bits_per_second": 8090763852.83878, "sender": true}}], "sum_sent": {"start": 0,
"end": 1.000293, "seconds": 1.000293, "bytes": 2141454336,
"bits_per_second": 17126616589.339321, "retransmits": 5, "sender": true},
"sum_received": {"start": 0, "end": 1.015947, "seconds": 1.015947, "bytes": 2138832896,
"bits_per_second": 16842082478.71198, "sender": true},
"cpu_utilization_percent": {"host_total": 19.30584335051019, "host_user": 0.609875624768715,
"host_system": 18.6911866374319, "remote_total": 22.674489825680315,
"remote_user": 0.16576411911683211, "remote_system": 22.507364593561935},
"sender_tcp_congestion": "bbr", "receiver_tcp_congestion": "bbr"}})";

/// As fast as the sender can; "sum" has the sender's bytes and datagrams.
inline constexpr const char* kUdpReceive = R"(
{"start": {"version": "iperf 3.12", "test_start": {"protocol": "UDP", "num_streams": 1,
"blksize": 32768, "omit": 0, "duration": 1, "bytes": 0, "blocks": 0, "reverse": 1, "tos": 0,
"target_bitrate": 0}}, "intervals": [{"streams": [], "sum": {"start": 0, "end": 0.250072,
"seconds": 0.25007200241088867, "bytes": 113836032, "bits_per_second": 3641704178.07774,
"jitter_ms": 0.18161390980287878, "lost_packets": 28323, "packets": 31797,
"lost_percent": 89.0744409849986, "omitted": false, "sender": false}}, {"streams": [],
"sum": {"start": 0.250072, "end": 0.500063, "seconds": 0.24999099969863892, "bytes": 99909632,
"bits_per_second": 3197223327.893879, "jitter_ms": 0.18264022862503762, "lost_packets": 19533,
"packets": 22582, "lost_percent": 86.498095828536, "omitted": false, "sender": false}}],
"end": {"streams": [{"udp": {"socket": 5, "start": 0, "end": 1.012562, "seconds": 1.012562,
"bytes": 4080599040, "bits_per_second": 32239796002.61515, "jitter_ms": 0.6347081602022965,
"lost_packets": 106146, "packets": 124530, "lost_percent": 85.23729221874247, "out_of_order": 0,
"sender": false}}], "sum": {"start": 0, "end": 1.003845, "seconds": 1.003845,
"bytes": 4080599040, "bits_per_second": 32239796002.61515, "jitter_ms": 0.6347081602022965,
"lost_packets": 106146, "packets": 124530, "lost_percent": 85.23729221874247, "sender": false},
"sum_sent": {"start": 0, "end": 1.012562, "seconds": 1.012562, "bytes": 4080599040,
"bits_per_second": 32239796002.61515, "jitter_ms": 0, "lost_packets": 0, "packets": 124530,
"lost_percent": 0, "sender": true}, "sum_received": {"start": 0, "end": 1.003845,
"seconds": 1.003845, "bytes": 539328512, "bits_per_second": 4298101894.216736,
"jitter_ms": 0.6347081602022965, "lost_packets": 106146, "packets": 122605,
"lost_percent": 85.23729221874247, "sender": false},
"cpu_utilization_percent": {"host_total": 7.07417350739235, "host_user": 0,
"host_system": 7.0740742945470645, "remote_total": 29.539704078548958,
"remote_user": 2.845839184803756, "remote_system": 26.693766134750724}}})";

/// Two streams, as fast as the sender can.
inline constexpr const char* kUdpSend = R"(
{"start": {"version": "iperf 3.12", "test_start": {"protocol": "UDP", "num_streams": 2,
"blksize": 32768, "omit": 0, "duration": 1, "bytes": 0, "blocks": 0, "reverse": 0, "tos": 0,
"target_bitrate": 0}}, "intervals": [{"streams": [], "sum": {"start": 0, "end": 0.260906,
"seconds": 0.26090601086616516, "bytes": 785121280, "bits_per_second": 24073689291.972267,
"packets": 23960, "omitted": false, "sender": true}}, {"streams": [], "sum": {"start": 0.260906,
"end": 0.500039, "seconds": 0.23913300037384033, "bytes": 810680320,
"bits_per_second": 27120650641.53089, "packets": 24740, "omitted": false, "sender": true}}],
"end": {"streams": [{"udp": {"socket": 5, "start": 0, "end": 1.000098, "seconds": 1.000098,
"bytes": 1508966400, "bits_per_second": 12070548286.267946, "jitter_ms": 0.22646735773100513,
"lost_packets": 41215, "packets": 46050, "lost_percent": 89.50054288816504, "out_of_order": 0,
"sender": true}}, {"udp": {"socket": 7, "start": 0, "end": 1.000098, "seconds": 1.000098,
"bytes": 1508966400, "bits_per_second": 12070548286.267946, "jitter_ms": 0.22619910587301184,
"lost_packets": 41212, "packets": 46050, "lost_percent": 89.4940282301846, "out_of_order": 0,
"sender": true}}], "sum": {"start": 0, "end": 1.002225, "seconds": 1.002225,
"bytes": 3017932800, "bits_per_second": 24141096572.535892, "jitter_ms": 0.22633323180200848,
"lost_packets": 82427, "packets": 92100, "lost_percent": 89.4972855591748, "sender": true},
"sum_sent": {"start": 0, "end": 1.000098, "seconds": 1.000098, "bytes": 3017932800,
"bits_per_second": 24141096572.535892, "jitter_ms": 0, "lost_packets": 0, "packets": 92100,
"lost_percent": 0, "sender": true}, "sum_received": {"start": 0, "end": 1.002225,
"seconds": 1.002225, "bytes": 289898496, "bits_per_second": 2314039230.7116666,
"jitter_ms": 0.22633323180200848, "lost_packets": 82427, "packets": 91274,
"lost_percent": 89.4972855591748, "sender": false},
"cpu_utilization_percent": {"host_total": 23.001763566681817, "host_user": 2.51663850065997,
"host_system": 20.48512506602185, "remote_total": 4.083153735632184, "remote_user": 0,
"remote_system": 4.083053959131545}}})";

}  // namespace adit::bench
